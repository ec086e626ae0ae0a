"""Widths of the parts of GMC blocks, and the mark of a block (docs/reference/bitstream.md, section 3)."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Mux, Value
from amaranth.lib import data
from cdu_spec import gmc
from cdu_spec.config import CduConfig
from cdu_spec.geometry import VALUE_BITS
from cdu_spec.modes import Coder, Mode
from cdu_spec.reconstruction import POINT_BITS

#: Bit position of the category of DC, and of the bits behind it, in a long block.
CATEGORY_AT = 8
BODY_AT = CATEGORY_AT + gmc.CATEGORY_BITS
CLASSES = gmc.RAW_CLASS + 1
#: Bits of the longest code words, and of the fields of a group.
A_BITS, B_BITS, MASK_BITS = gmc.longest(gmc.A_CODES), gmc.longest(gmc.B_CODES), gmc.longest(gmc.MASK_CODES)
FIELDS_BITS = gmc.GROUP_VALUES * VALUE_BITS
#: Bytes of a slot, which an encoder writes and a decoder takes at once; any column fits into each.
_SLOT_BYTES = (10, 16)


def field_bits(group_class: int) -> int:
    """Return the number of bits of a nonzero coefficient: sign and low bits, or a whole byte."""
    return VALUE_BITS if group_class == gmc.RAW_CLASS else group_class


def _longest_group() -> int:
    """Return the number of bits of the longest mask and fields of a group."""
    coded = (
        len(word) + (mask + 1).bit_count() * field_bits(number)
        for number in gmc.CODED_CLASSES
        for mask, word in enumerate(gmc.MASK_CODES[min(number, gmc.LAST_MASK_CLASS) - 1])
    )
    return max(FIELDS_BITS, *coded)


#: Bits of the longest column: masks and fields, and the classes of the next column between them.
COLUMN_BITS = 2 * _longest_group() + A_BITS + B_BITS


def slot_bytes(config: CduConfig) -> int:
    """Return the number of bytes of a slot; a slice is one slot or several."""
    return next(size for size in _SLOT_BYTES if config.slice_bytes % size == 0)


def context(group_class: Value) -> Value:
    """Return the context that the class of a group in the column before selects."""
    return Mux(group_class > gmc.LAST_CLASS_CONTEXT, gmc.LAST_CLASS_CONTEXT, group_class)[:3]


class Mark(data.StructLayout):
    """Part of a tag that accompanies a block of coefficients: ``bank``, ``last`` and the reconstruction ``point``."""

    def __init__(self) -> None:
        super().__init__({"bank": 1, "last": 1, "point": POINT_BITS})


def mark_of(mark: Any, tag: Any) -> list[Any]:
    """Return statements that set the mark of a block from its tag."""
    return [mark["bank"].eq(tag["bank"]), mark["last"].eq(tag["last"]), mark["point"].eq(tag["how"]["shifts"]["point"])]


def tag_of(tag: Any, mark: Any) -> list[Any]:
    """Return statements that set the tag of a block from its mark."""
    coded = tag["how"]["shifts"]
    return [
        tag["mode"].eq(Mode.JPEG_ACT),
        tag["bank"].eq(mark["bank"]),
        tag["last"].eq(mark["last"]),
        coded["coder"].eq(Coder.GMC),
        coded["point"].eq(mark["point"]),
    ]
