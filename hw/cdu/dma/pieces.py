"""Pieces of a segment: its bytes word by word, then its padding."""

from __future__ import annotations

from amaranth.hdl import Const, Module, Mux, Signal, Value
from amaranth.utils import exact_log2

from cdu.dma.segments import PAD_BITS
from cdu.parts.wide_sum import within


class Pieces:
    """The piece of a segment that moves next, in registers, so that no path begins with its comparisons.

    Parameters
    ----------
    m
        Module with these registers.
    size
        Bytes of a word of memory.
    bits
        Bits of the number of bytes of a segment.

    Attributes
    ----------
    offset
        Place of the piece in its word.
    left, pad
        Bytes of memory, and of padding, from the piece on.
    count
        Bytes of the piece, at most ``size``.
    of_memory
        The piece is of memory, and not of padding.
    whole
        The piece is the last one of memory, or of padding.
    """

    def __init__(self, m: Module, size: int, bits: int) -> None:
        self.size = size
        self.offset = Signal(exact_log2(size), name="offset")
        self.left = Signal(bits, name="left")
        self.pad = Signal(PAD_BITS, name="pad")
        self.count = Signal(range(size + 1), name="count")
        self.of_memory = Signal(name="of_memory")
        self.whole = Signal(name="whole")
        self._next_left, self._next_pad = (Signal.like(one, name=f"next_{one.name}") for one in (self.left, self.pad))
        m.d.comb += [
            self._next_left.eq(self.left - self.count),
            self._next_pad.eq(Mux(self.of_memory, self.pad, self.pad - self.count)),
        ]

    @property
    def last(self) -> Value:
        """Return whether the piece is the last one of its segment."""
        return self.whole & (~self.of_memory | (self.pad == 0))

    def begin(self, m: Module, offset: Value, left: Value, pad: Value) -> None:
        """Choose the first piece of a segment in this cycle."""
        m.d.sync += [self.offset.eq(offset), self.left.eq(left), self.pad.eq(pad)]
        self._choose(m, left != 0, left, (self.size - offset)[: len(self.count)], pad)

    def follow(self, m: Module) -> None:
        """Choose the next piece in this cycle."""
        m.d.sync += self.pad.eq(self._next_pad)
        with m.If(self.of_memory):
            m.d.sync += [self.left.eq(self._next_left), self.offset.eq(0)]
        self._choose(m, self.of_memory & ~self.whole, self._next_left, Const(self.size), self._next_pad)

    def _choose(self, m: Module, of_memory: Value, left: Value, room: Value, pad: Value) -> None:
        """Set the piece: of the bytes ``left``, which may fit the ``room`` in their word, or else of the padding."""
        fits, pad_fits = within(left, room), within(pad, Const(self.size))
        m.d.sync += [
            self.of_memory.eq(of_memory),
            self.count.eq(Mux(of_memory, Mux(fits, left, room), Mux(pad_fits, pad, self.size))),
            self.whole.eq(Mux(of_memory, fits, pad_fits)),
        ]
