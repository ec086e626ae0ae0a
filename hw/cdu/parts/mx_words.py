"""Words of the streams of MX blocks, and constants of the formats."""

from __future__ import annotations

from collections.abc import Callable

from amaranth.hdl import Module, Shape, Signal, Value
from amaranth.lib import data
from cdu_spec.geometry import LANES
from cdu_spec.mx import MX_FORMATS, MX_VALUES, SCALE_BYTES, BlockFormat

#: Rows of 8 values in a block.
BLOCK_ROWS = MX_VALUES // LANES
#: Bits of the field that selects a format by its number.
FORMAT_BITS = Shape.cast(range(len(MX_FORMATS))).width
#: Bits of the longest code.
CODE_BITS = max(kind.bits for kind in MX_FORMATS.values())
SCALE_BITS = 8 * SCALE_BYTES


class CodedRow(data.StructLayout):
    """Bytes of a row in a ``format``: the ``scale`` if the row ``heads`` a block, else 0; then ``codes``.

    The codes of a row take as many bytes as a code has bits; the bytes behind them are zeros.

    Parameters
    ----------
    rows
        Rows of a block in one word: 1, 2 or 4.
    beside
        Bits of further data that accompany the row.
    """

    def __init__(self, rows: int = 1, beside: int = 0) -> None:
        fields = {"scale": SCALE_BITS, "codes": rows * LANES * CODE_BITS, "heads": 1, "format": FORMAT_BITS}
        super().__init__(fields | ({"beside": beside} if beside else {}))


def constant(m: Module, number: Value, of: Callable[[BlockFormat], int], name: str) -> Signal:
    """Return a constant of the format ``number``, combinationally; that of the last format for an invalid number."""
    kinds = sorted(MX_FORMATS.values(), key=lambda kind: kind.number)
    numbers = [of(kind) for kind in kinds]
    chosen = Signal(range(min(0, *numbers), max(numbers) + 1), name=name)
    with m.Switch(number):
        for kind, one in zip(kinds[:-1], numbers, strict=False):
            with m.Case(kind.number):
                m.d.comb += chosen.eq(one)
        with m.Default():
            m.d.comb += chosen.eq(numbers[-1])
    return chosen
