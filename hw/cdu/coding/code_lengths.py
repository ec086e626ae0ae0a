"""How many bytes the codes of a row take."""

from __future__ import annotations

from amaranth.hdl import Module, Signal, Value
from cdu_spec.affine import CODE_BITS
from cdu_spec.geometry import LANES


def code_bytes(m: Module, count: Value, bits_log2: Value, name: str) -> Signal:
    """Bytes that ``count`` codes (0..8) of ``2**bits_log2`` bits side by side take, the last one of them perhaps in part."""
    size = Signal(range(LANES + 1), name=name)
    with m.Switch(bits_log2):
        for number, bits in enumerate(CODE_BITS):
            per_byte = 8 // bits
            with m.Case(number):
                m.d.comb += size.eq((count + per_byte - 1) >> (per_byte - 1).bit_length())
    return size
