"""What goes to the lanes of a compressor with a block, depending on the modes that are built in."""

from __future__ import annotations

from cdu_spec.bitstream import Mode
from cdu_spec.config import CduConfig

from cdu.modes import has_ranges
from cdu.words import BlockRow, BlockWord


def draws(config: CduConfig) -> bool:
    """Whether a mode is built in that rounds at random."""
    return any(mode.is_affine and mode is not Mode.BLPA for mode in config.built_modes)


def packer_word(config: CduConfig) -> BlockWord:
    """A word on its way to the lanes: values as SFPR gives them, with the range of their block where blocks have one."""
    return BlockWord(config, config.value_bits, ranged=has_ranges(config.built_modes))


def lane_row(config: CduConfig) -> BlockRow:
    """A row of such a word, with what random numbers depend on where there are any."""
    return BlockRow(config.value_bits, ranged=has_ranges(config.built_modes), drawn=draws(config))
