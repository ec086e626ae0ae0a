"""Payloads of the blocks of baseline JPEG (ITU-T T.81)."""

from __future__ import annotations

from amaranth.hdl import Shape
from amaranth.lib import data
from cdu_spec.geometry import BLOCK_VALUES, LANES
from cdu_spec.jpeg import DC_MAX, DC_MIN, ZRL_RUN

from cdu.parts.streams import Beat

#: A quantised coefficient of 8-bit samples.
COEFFICIENT = Shape.cast(range(DC_MIN, DC_MAX + 1))
#: The difference of two DC coefficients; coefficients too.
DIFFERENCE = Shape.cast(range(DC_MIN - DC_MAX, DC_MAX - DC_MIN + 1))
#: Bytes of a word of an entropy-coded segment at a port, and of what is coded or read of it in a cycle.
WORD_BYTES, PIECE_BYTES = 8, 4


class CoefficientColumn(data.StructLayout):
    """A column of a block, one horizontal frequency: 8 coefficients, lowest vertical frequency first.

    ``last`` stands in all columns of the last block of a scan.
    """

    def __init__(self) -> None:
        super().__init__({"values": data.ArrayLayout(COEFFICIENT, LANES), "last": 1})


class RunLengthSymbol(data.StructLayout):
    """A symbol: what is coded for a coefficient (T.81, F.1.2).

    ``dc``: ``value`` is the difference of a DC coefficient to that of the block before. Else ``run`` zeros and then ``value``,
    an AC coefficient; 0 makes it ZRL (``run`` 15) or EOB (``run`` 0). ``ends``: no symbol, the scan is over.
    """

    def __init__(self) -> None:
        super().__init__({"dc": 1, "run": range(ZRL_RUN), "value": DIFFERENCE, "ends": 1})


class PlacedCoefficient(data.StructLayout):
    """What a symbol decodes to: at ``place`` in zig-zag order a ``value``, if it ``stores`` one.

    ``begins``: it is the DC coefficient of a block. ``error``: the symbol is wrong, the block with it. ``ends``: no symbol, the
    scan is over.
    """

    def __init__(self) -> None:
        super().__init__({"place": range(BLOCK_VALUES), "value": COEFFICIENT, "stores": 1, "begins": 1, "error": 1, "ends": 1})


class DecodedColumn(data.StructLayout):
    """A :class:`CoefficientColumn`, and whether its block has an ``error``, the same in all columns.

    A block with an error is the last one of its scan; what it holds is undefined.
    """

    def __init__(self) -> None:
        super().__init__({"values": data.ArrayLayout(COEFFICIENT, LANES), "last": 1, "error": 1})


class SampleRow(data.StructLayout):
    """A row of a block: 8 samples after JPEG's level shift, -128 to 127. ``last`` stands in all rows of a scan's last block."""

    def __init__(self) -> None:
        super().__init__({"values": Beat, "last": 1})


class DecodedRow(data.StructLayout):
    """A :class:`SampleRow`, and whether its block has an ``error``, as in :class:`DecodedColumn`."""

    def __init__(self) -> None:
        super().__init__({"values": Beat, "last": 1, "error": 1})
