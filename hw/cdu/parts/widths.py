"""Integer expressions with their range, from which every width in the data path is derived."""

from __future__ import annotations

from dataclasses import dataclass

from amaranth.hdl import Module, Mux, Shape, Signal, Value


@dataclass(frozen=True)
class Ranged:
    """An integer expression with the least and the greatest value it can take."""

    value: Value
    low: int
    high: int

    @classmethod
    def of(cls, value: Value) -> Ranged:
        """Return an expression with the full range of a value's shape."""
        shape = value.shape()
        if shape.signed:
            return cls(value, -(1 << (shape.width - 1)), (1 << (shape.width - 1)) - 1)
        return cls(value, 0, (1 << shape.width) - 1)

    @property
    def shape(self) -> Shape:
        """Return the narrowest shape that holds the range."""
        return Shape.cast(range(self.low, self.high + 1)) if self.low < 0 else Shape.cast(range(self.high + 1))

    def __add__(self, other: Ranged | int) -> Ranged:
        if isinstance(other, int):
            return Ranged(self.value + other, self.low + other, self.high + other)
        return Ranged(self.value + other.value, self.low + other.low, self.high + other.high)

    def __sub__(self, other: Ranged) -> Ranged:
        return Ranged(self.value - other.value, self.low - other.high, self.high - other.low)

    def __neg__(self) -> Ranged:
        return Ranged(-self.value, -self.high, -self.low)

    def __lshift__(self, shift: int) -> Ranged:
        return Ranged(self.value << shift, self.low << shift, self.high << shift)

    def __rshift__(self, shift: int) -> Ranged:
        return Ranged(self.value >> shift, self.low >> shift, self.high >> shift)

    def round_half_up(self, shift: int) -> Ranged:
        """Return ``floor(self / 2**shift + 1/2)``."""
        return (self + (1 << shift >> 1)) >> shift if shift else self

    def saturated(self, bits: int) -> Value:
        """Return the value as ``signed(bits)``, limited at both ends."""
        least, most = -(1 << (bits - 1)), (1 << (bits - 1)) - 1
        narrow = self.value[:bits].as_signed()
        if self.low >= least and self.high <= most:
            return narrow
        upper = self.value[bits - 1 :]
        fits = ~(upper.any() ^ upper.all())
        return Mux(fits, narrow, Mux(self.value[-1], least, most))[:bits].as_signed()

    def within(self, low: int, high: int) -> Ranged:
        """Return the same expression with a range known to be tighter (correlated operands)."""
        return Ranged(self.value, max(low, self.low), min(high, self.high))

    def wire(self, m: Module, name: str) -> Ranged:
        """Return the expression as a combinational signal of exactly its width."""
        signal = Signal(self.shape, name=name)
        m.d.comb += signal.eq(self.value)
        return Ranged(signal, self.low, self.high)

    def register(self, m: Module, enable: Value, name: str) -> Ranged:
        """Return the expression one cycle later, in a register that moves when ``enable`` is high and is not reset."""
        signal = Signal(self.shape, name=name, reset_less=True)
        with m.If(enable):
            m.d.sync += signal.eq(self.value)
        return Ranged(signal, self.low, self.high)
