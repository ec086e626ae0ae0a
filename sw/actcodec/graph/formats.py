"""The formats of fixed length by name."""

from __future__ import annotations

from collections.abc import Mapping

from cdu_tools.errors import UserError

from actcodec.graph.flags import Bits, Brc
from actcodec.graph.format import Format
from actcodec.graph.integers import IntegerColumns, IntegerGroups, IntegerRows
from actcodec.graph.layout import Layout, layout_of

__all__ = ["FORMATS", "Format", "Layout", "format_of", "layout_of"]

_INTEGER_BITS = (8, 6, 4)
#: Every format by its name.
FORMATS: Mapping[str, Format] = {
    form.name: form
    for form in (
        *(kind(bits) for kind in (IntegerRows, IntegerGroups, IntegerColumns) for bits in _INTEGER_BITS),
        Brc(),
        Bits(),
    )
}


def format_of(name: str) -> Format:
    """The format of a name; UserError for a name that none has."""
    if name not in FORMATS:
        raise UserError(f"format {name!r} is not known: use {', '.join(FORMATS)}")
    return FORMATS[name]
