"""Payloads of the blocks of baseline JPEG (ITU-T T.81)."""

from __future__ import annotations

from amaranth.hdl import Shape
from amaranth.lib import data
from cdu_spec.geometry import BLOCK_VALUES, LANES
from cdu_spec.jpeg import DC_MAX, DC_MIN, ZRL_RUN

from cdu.parts.streams import Beat

#: A quantised coefficient of 8-bit samples.
COEFFICIENT = Shape.cast(range(DC_MIN, DC_MAX + 1))
#: The difference of two DC coefficients; also wide enough for any coefficient.
DIFFERENCE = Shape.cast(range(DC_MIN - DC_MAX, DC_MAX - DC_MIN + 1))
#: Bytes of a word of an entropy-coded segment at a port, and bytes that are coded or decoded per cycle.
WORD_BYTES, PIECE_BYTES = 8, 4


class CoefficientColumn(data.StructLayout):
    """A column of a block, one horizontal frequency: 8 coefficients, lowest vertical frequency first.

    ``last`` is set in all columns of the last block of a scan.
    """

    def __init__(self) -> None:
        super().__init__({"values": data.ArrayLayout(COEFFICIENT, LANES), "last": 1})


class RunLengthSymbol(data.StructLayout):
    """A symbol: what is coded for a coefficient (T.81, F.1.2).

    ``dc``: ``value`` is the difference between the DC coefficients of this block and the block before. Otherwise ``run`` zeros
    precede the AC coefficient ``value``; a ``value`` of 0 means ZRL (``run`` 15) or EOB (``run`` 0). ``ends``: not a symbol,
    the scan is over.
    """

    def __init__(self) -> None:
        super().__init__({"dc": 1, "run": range(ZRL_RUN), "value": DIFFERENCE, "ends": 1})


class PlacedCoefficient(data.StructLayout):
    """Decoded symbol: the coefficient ``value`` at ``place`` in zig-zag order, if the symbol ``stores`` one.

    ``begins``: the coefficient is the DC of a block. ``error``: the symbol is invalid, and so is its block. ``ends``: not a
    symbol, the scan is over.
    """

    def __init__(self) -> None:
        super().__init__({"place": range(BLOCK_VALUES), "value": COEFFICIENT, "stores": 1, "begins": 1, "error": 1, "ends": 1})


class DecodedColumn(data.StructLayout):
    """A :class:`CoefficientColumn`, and whether its block has an ``error``, which is the same in all its columns.

    A block with an error is the last one of its scan; its coefficients are undefined.
    """

    def __init__(self) -> None:
        super().__init__({"values": data.ArrayLayout(COEFFICIENT, LANES), "last": 1, "error": 1})


class SampleRow(data.StructLayout):
    """A row of 8 samples, -128 to 127 after JPEG's level shift. ``last`` is set in all rows of a scan's last block."""

    def __init__(self) -> None:
        super().__init__({"values": Beat, "last": 1})


class DecodedRow(data.StructLayout):
    """A :class:`SampleRow`, and whether its block has an ``error``, as in :class:`DecodedColumn`."""

    def __init__(self) -> None:
        super().__init__({"values": Beat, "last": 1, "error": 1})
