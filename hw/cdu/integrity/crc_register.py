"""CRC-32 over words of any number of bytes, in one step for each word."""

from __future__ import annotations

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from cdu_spec.crc import CRC_BITS, INITIAL, after_zeros

from cdu.parts.barrel import shift_left


class CrcRegister:
    """Register of a CRC, and its next value after the bytes of a word.

    A CRC is linear: the register is added to the first bytes of the word, and every bit of these has a fixed contribution to
    the next register, which depends on the number of bits behind it. So that this is the same for any number of bytes, the
    bytes are moved to the end of the word.

    Parameters
    ----------
    size
        Greatest number of bytes of a word.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self.value = Signal(CRC_BITS, init=INITIAL, name="crc")

    def at_end(self, m: Module, data: Value, count: Value) -> tuple[Value, Value]:
        """Return ``count`` bytes of a word, with zeros behind them, moved to its end; and the number of bytes moved by."""
        places = Signal(range(self.size + 1), name="crc_places")
        m.d.comb += places.eq(self.size - count)
        return shift_left(m, data, places, "crc_word"), places

    def update(self, m: Module, takes: Value, word: Value, places: Value, ends: Value) -> Signal:
        """Take the bytes of a word (:meth:`at_end`) and return the register behind them, combinationally.

        It begins anew when the packet ``ends``.
        """
        register = Cat(self.value, Const(0, 8 * self.size))
        front = shift_left(m, register, places, "crc_front")
        bits = Signal(
            8 * self.size, name="crc_bits"
        )  # a name, or the expression would stand in the text as often as there are bits
        m.d.comb += bits.eq(front[: 8 * self.size] ^ word)
        behind = Signal(CRC_BITS, name="crc_behind")
        columns = [after_zeros(1, 8 * self.size - place) for place in range(8 * self.size)]
        for place in range(CRC_BITS):
            parts = [bits[row] for row, column in enumerate(columns) if column >> place & 1]
            m.d.comb += behind[place].eq(Cat(*parts).xor() ^ front[8 * self.size + place])
        with m.If(takes):
            m.d.sync += self.value.eq(Mux(ends, INITIAL, behind))
        return behind
