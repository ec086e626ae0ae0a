"""Catalogue of all proven properties: the stream rules of every block, and the properties in the blocks' records."""

from __future__ import annotations

from collections.abc import Sequence

from cdu.delivery.blocks import BLOCKS, check_block
from cdu_spec.config import CduConfig
from cdu_spec.config_rules import ConfigError
from cdu_tools.near_names import unknown

from cdu_verif import blocks as records
from cdu_verif.formal.proof import Property
from cdu_verif.formal.properties import stream_properties


def names() -> tuple[str, ...]:
    """Return the names that ``--block`` takes."""
    return (*BLOCKS, *records.parts())


def properties(config: CduConfig, blocks: Sequence[str] = (), name: str | None = None) -> list[Property]:
    """Return the properties of the named blocks (all if none is named), or only those with the name ``name``.

    Raises ConfigError for unknown names.
    """
    for block in blocks:
        check_block(block, records.parts())
    found = [one for block in blocks or names() for one in _of(block, config)]
    if name is None:
        return found
    chosen = [one for one in found if one.name == name]
    if not chosen:
        raise ConfigError(unknown("property", name, [one.name for one in found]))
    return chosen


def _of(block: str, config: CduConfig) -> list[Property]:
    found = records.record(block)
    rules = stream_properties(block, config, found.streams) if found.streams else []
    return [*rules, *found.properties(config)]
