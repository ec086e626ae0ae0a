"""Codes of 1, 2, 4 or 8 bits: one per byte, and side by side as in the payload."""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Signal, Value
from cdu_spec.affine import CODE_BITS
from cdu_spec.geometry import LANES, VALUE_BITS

#: Bits of a row of 8 codes, one per byte.
ROW_BITS = LANES * VALUE_BITS


def pack_codes(m: Module, row: Value, bits_log2: Value, name: str) -> Signal:
    """The low ``2**bits_log2`` bits of each of 8 bytes side by side, byte 0 lowest; zeros behind them."""
    packed = Signal(ROW_BITS, name=name)
    with m.Switch(bits_log2):
        for number, bits in enumerate(CODE_BITS):
            with m.Case(number):
                m.d.comb += packed.eq(Cat(*(row.word_select(lane, VALUE_BITS)[:bits] for lane in range(LANES))))
    return packed


def unpack_codes(m: Module, packed: Value, bits_log2: Value, name: str) -> Signal:
    """The inverse: 8 codes of ``2**bits_log2`` bits, each in a byte of its own with zeros above. The rest does not matter."""
    row = Signal(ROW_BITS, name=name)
    with m.Switch(bits_log2):
        for number, bits in enumerate(CODE_BITS):
            with m.Case(number):
                for lane in range(LANES):
                    m.d.comb += row.word_select(lane, VALUE_BITS).eq(packed.word_select(lane, bits))
    return row


def code_bytes(m: Module, count: Value, bits_log2: Value, name: str) -> Signal:
    """Bytes that ``count`` codes (0..8) of ``2**bits_log2`` bits side by side take, the last one of them perhaps in part."""
    size = Signal(range(LANES + 1), name=name)
    with m.Switch(bits_log2):
        for number, bits in enumerate(CODE_BITS):
            per_byte = 8 // bits
            with m.Case(number):
                m.d.comb += size.eq((count + per_byte - 1) >> (per_byte - 1).bit_length())
    return size
