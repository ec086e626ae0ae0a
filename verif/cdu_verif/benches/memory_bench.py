"""A master of a memory port in a simulation: segments in, packets in or out, memory at the other side."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from cdu.dma.axi4 import BOUNDARY_BYTES, BURST_WORDS
from cdu.dma.segments import PAD_BITS
from cdu_spec.dma import MEMORY_ADDRESS_BITS
from cdu_spec.port_fields import pack
from cocotb.triggers import RisingEdge

from cdu_verif.simulation.axi_memory import AxiMemory
from cdu_verif.simulation.axi_ports import random_patterns
from cdu_verif.simulation.bench import Bench
from cdu_verif.simulation.patterns import PATTERNS

#: Bytes of the memory, and where it may begin: so that each bit of an address is 0 in some tests and 1 in others.
MEMORY_BYTES = 1 << 16
_BASES = (0, 0x55_55AA_0000, 0xAA_AA55_0000, (1 << MEMORY_ADDRESS_BITS) - MEMORY_BYTES)


@dataclass(frozen=True)
class MemoryPiece:
    """A segment: some bytes of memory, then padding."""

    address: int
    bytes: int
    pad: int
    repeats: bool = False


class MemoryBench(Bench):
    """One simulated master and its memory; parameters as in :class:`~cdu_verif.simulation.bench.Bench`."""

    def __init__(self, dut: Any, test: str) -> None:
        super().__init__(dut, test)
        base = self.rng.choice(_BASES)
        self.memory = AxiMemory(dut, "m_axi", MEMORY_BYTES, base)
        self.memory.put(base, self.rng.randbytes(MEMORY_BYTES))
        self.size = self.ports["m_axi_rdata" if "m_axi_rdata" in self.ports else "m_axi_wdata"]["width"] // 8
        self.clients = range(sum(name.startswith("segments__") and name.endswith("__valid") for name in self.ports))

    def behave(self, pattern: str) -> None:
        """Every stream and every channel behaves by this pattern, independently of the others."""
        for source in self.sources.values():
            source.pattern = PATTERNS[pattern](self.rng)[0]
        for sink in self.sinks.values():
            sink.pattern = PATTERNS[pattern](self.rng)[1]
        self.memory.stall(random_patterns(self.rng, lambda rng: PATTERNS[pattern](rng)[0]))

    def pieces(self, count: int, begin: int, end: int, apart: bool = False, value: int = 0) -> list[MemoryPiece]:
        """Random segments between two places of the memory; with ``apart`` no two share a byte.

        With ``value``, the bytes of a value, all are of whole values, and padding may repeat the last one.
        """
        found: list[MemoryPiece] = []
        whole = value or 1
        for number in range(count):
            share = (end - begin) // count
            first, room = (begin + number * share, share) if apart else (begin, end - begin)
            size = min(self.rng.choice((0, 1, 3, self.size, 28, 128, 300, 5000)), room) // whole * whole
            place = self.rng.randint(0, room - size)
            pad = self.rng.choice((0, 0, 1, self.size, (1 << PAD_BITS) - 1)) // whole * whole
            repeats = bool(value) and (size > 0 or any(one.bytes for one in found)) and self.rng.random() < 0.7
            found.append(MemoryPiece(self.memory.base + first + place, size, pad, repeats))
        return found

    def at_boundary(self, client: int) -> list[MemoryPiece]:
        """Segments that begin at each word of a burst before a boundary of 4 KiB and end behind it."""
        boundary = self.memory.base + BOUNDARY_BYTES * (1 + 2 * client)
        return [MemoryPiece(boundary - before * self.size, (before + 3) * self.size, 0) for before in range(1, BURST_WORDS + 1)]

    def send_segments(self, client: int, pieces: list[MemoryPiece]) -> None:
        """Queue the segments of a packet."""
        port = self.ports[f"segments__{client}__payload"]
        words = [vars(one) | {"last": one is pieces[-1]} for one in pieces]
        self.sources[f"segments__{client}"].send(pack(port, word) for word in words)

    async def requests(self, channel: str, count: int) -> list[tuple[int, int]]:
        """Clients and words of the next bursts that are asked for, ``ar`` or ``aw``."""
        found: list[tuple[int, int]] = []
        valid, ready, number, length = (getattr(self.dut, f"m_axi_{channel}{name}") for name in ("valid", "ready", "id", "len"))
        while len(found) < count:
            await RisingEdge(self.dut.clk)
            if int(valid.value) and int(ready.value):
                found.append((int(number.value), int(length.value) + 1))
        return found

    def packet(self, words: list[tuple[int, int, int]]) -> bytes:
        """The bytes of words of data, count and last; AssertionError for one that is not as it should be."""
        for place, (data, count, last) in enumerate(words):
            assert bool(last) == (place == len(words) - 1)
            assert data >> 8 * count == 0, "something behind the end of a word"
            assert last or count == self.size, "a partial word in the middle of a packet"
        return b"".join(data.to_bytes(self.size, "little")[:count] for data, count, _ in words)
