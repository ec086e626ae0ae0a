"""Pieces of memory: what the walkers name, and what readers and writers move."""

from __future__ import annotations

from amaranth.hdl import Value
from amaranth.lib import data
from amaranth.utils import exact_log2
from cdu_spec.dma import MEMORY_ADDRESS_BITS, SIZE_BITS

from cdu.dma.axi4 import BOUNDARY_BYTES

#: Bits of the number of bytes that a packet has and memory has not: up to 255 float32, what a group of 256 may lack.
PAD_BITS = 10


class Segment(data.StructLayout):
    """``bytes`` bytes from ``address`` on, then ``pad`` bytes that only the packet has; ``last`` ends the packet.

    Padding is zeros, or with ``repeats`` the last value before it again.
    """

    def __init__(self) -> None:
        super().__init__({"address": MEMORY_ADDRESS_BITS, "bytes": SIZE_BITS, "pad": PAD_BITS, "repeats": 1, "last": 1})


def words_to_boundary(address: Value, size: int) -> Value:
    """Words of ``size`` bytes from that in which ``address`` lies up to the next boundary that a burst must not cross."""
    return (BOUNDARY_BYTES // size) - address[exact_log2(size) : exact_log2(BOUNDARY_BYTES)]
