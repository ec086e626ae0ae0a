"""The blocks that a study of hardware is about."""

from __future__ import annotations

from collections.abc import Sequence

from cdu.delivery import generator
from cdu.delivery.blocks import BLOCKS, UNITS, check_block
from cdu.delivery.memories import Memories
from cdu_spec.config import CduConfig
from cdu_tools.distinct import check_distinct

#: The block that is the unit.
UNIT = "array"


def check_blocks(blocks: Sequence[str]) -> None:
    """ConfigError for a name that is no block's, UserError for one that is given twice."""
    check_distinct("block", blocks)
    for block in blocks:
        check_block(block)


def generated(config: CduConfig, blocks: Sequence[str], memories: Memories | None = None) -> list[generator.Generated]:
    """The blocks of a configuration; of no names all blocks, and the unit under the name of the configuration."""
    every = (*(name for name in BLOCKS if name not in UNITS), None)
    return [generator.generate(config, block, memories) for block in blocks or every]
