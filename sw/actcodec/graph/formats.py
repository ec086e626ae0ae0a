"""The formats of fixed length by name."""

from __future__ import annotations

from collections.abc import Mapping

from cdu_spec.mx import MX_FORMATS
from cdu_tools.errors import UserError
from cdu_tools.near_names import unknown

from actcodec.graph.channels import Sfpr
from actcodec.graph.flags import Bits, Brc
from actcodec.graph.format import Format
from actcodec.graph.integers import IntegerColumns, IntegerGroups, IntegerRows
from actcodec.graph.layout import Layout, layout_of
from actcodec.graph.scaled_blocks import Mx, Nvfp4
from actcodec.graph.windows import Windows

__all__ = ["FORMATS", "Format", "Layout", "format_of", "layout_of"]

_ROW_BITS = (16, 8, 6, 5, 4)
_GROUP_BITS = (8, 6, 5, 4)
_COLUMN_BITS = (8, 6, 4)  # with 5 bits only rows of 128 values would fit
_WINDOW_BITS = (2, 4)
#: Every format by its name.
FORMATS: Mapping[str, Format] = {
    form.name: form
    for form in (
        *map(IntegerRows, _ROW_BITS),
        *map(IntegerGroups, _GROUP_BITS),
        *(IntegerColumns(bits) for bits in _COLUMN_BITS),
        *(Mx(name) for name in MX_FORMATS),
        Nvfp4(),
        Sfpr(),
        Brc(),
        Bits(),
        *(Windows(bits) for bits in _WINDOW_BITS),
    )
}


#: Formats of floating-point values: all but those of booleans and of positions in windows.
VALUE_FORMATS = {name: form for name, form in FORMATS.items() if not isinstance(form, (Bits, Windows))}


def format_of(name: str, among: Mapping[str, Format] = FORMATS) -> Format:
    """Return the format of a name; UserError for a name that none has."""
    if name not in among:
        raise UserError(unknown("format", name, among))
    return among[name]
