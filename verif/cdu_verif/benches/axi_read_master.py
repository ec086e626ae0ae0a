"""Tests of the read half of an AXI4 port: segments of memory against the packets that they become."""

from __future__ import annotations

import cocotb
from cdu.dma.axi4 import BURST_WORDS
from cdu.dma.memory_reader import repeated_bytes
from cdu_spec.dma import SIZE_BITS
from cdu_spec.port_fields import unpack

from cdu_verif.benches.memory_bench import MEMORY_BYTES, MemoryBench, Piece
from cdu_verif.simulation.bench import simulated_config
from cdu_verif.simulation.bench_test import bench_test
from cdu_verif.simulation.patterns import PATTERNS

_CONFIG = simulated_config()
#: Bytes of a value that padding of the first client may repeat.
_REPEATED = repeated_bytes(_CONFIG)


async def _read(bench: MemoryBench, packets: list[list[list[Piece]]], cycles: int = 60) -> list[list[int]]:
    """Fetch packets, each client's one after the other, compare them and return the results of each client."""
    for client, wanted in enumerate(packets):
        for pieces in wanted:
            bench.send_segments(client, pieces)
        bench.sinks[f"result__{client}"].received.clear()
        bench.sinks[f"o__{client}"].received.clear()
    work = sum(one.bytes + one.pad + bench.size for wanted in packets for pieces in wanted for one in pieces)
    await bench.run(
        lambda: all(len(bench.sinks[f"result__{client}"].received) >= len(wanted) for client, wanted in enumerate(packets)),
        2000 + cycles * work // bench.size,
        "packets",
    )
    await bench.idle(10)
    for client, wanted in enumerate(packets):
        words = [
            (word["data"], word["count"], word["last"])
            for word in (unpack(bench.ports[f"o__{client}__payload"], bits) for bits in bench.sinks[f"o__{client}"].received)
        ]
        ends = [place for place, (_, _, last) in enumerate(words, 1) if last]
        assert len(ends) == len(wanted), f"{len(ends)} packets, not {len(wanted)}"
        for begin, end, pieces in zip([0, *ends], ends, wanted, strict=False):
            golden = _packet(bench, pieces)
            if bench.memory.faulty:
                continue
            assert bench.packet(words[begin:end]) == golden, f"client {client}: {pieces}"
            # Receivers of scales rely on the last word being empty only if the last segment is.
            assert words[end - 1][1] or not (pieces[-1].bytes or pieces[-1].pad), f"client {client}: {pieces}"
            bench.cases += 1
    return [bench.sinks[f"result__{client}"].received for client in bench.clients]


def _packet(bench: MemoryBench, pieces: list[Piece]) -> bytes:
    """Return the packet that pieces of memory and their padding make."""
    packet, last = b"", b""
    for one in pieces:
        content = bench.memory.get(one.address, one.bytes)
        last = content[-_REPEATED:] or last
        packet += content + (last * (one.pad // _REPEATED) if one.repeats else bytes(one.pad))
    return packet


@bench_test(MemoryBench, pattern=list(PATTERNS))
async def segments(bench: MemoryBench, pattern: str) -> None:
    """Segments of any length at any address, both clients at once, every end stalled at random independently."""
    bench.behave(pattern)
    bench.memory.latency = bench.rng.choice((0, 3, 40))
    for _ in range(4 if bench.full else 1):
        values = [0 if client else _REPEATED for client in bench.clients]
        packets = [[bench.pieces(bench.rng.randint(1, 6), 0, MEMORY_BYTES, value=value) for _ in range(4)] for value in values]
        assert not any(any(results) for results in await _read(bench, packets))


@bench_test(MemoryBench)
async def empty_packets(bench: MemoryBench) -> None:
    """A packet of no bytes, and one of padding alone, come out and end."""
    place = bench.memory.base
    packets = [[[Piece(place, 0, 0)], [Piece(place, 0, 9)], [Piece(place, 0, 0), Piece(place, 5, 0)]] for _ in bench.clients]
    await _read(bench, packets)


@bench_test(MemoryBench)
async def long_segments(bench: MemoryBench) -> None:
    """The first bursts of segments of every power of two up to 2 GiB have the greatest length; a reset ends them."""
    for bit in range((2 * BURST_WORDS * bench.size).bit_length(), SIZE_BITS):
        for client in bench.clients:
            bench.send_segments(client, [Piece(bench.memory.base + MEMORY_BYTES // 2 * client, 1 << bit, 0)])
        asked = cocotb.start_soon(bench.requests("ar", 2 * len(bench.clients)))
        await bench.run(asked.done, 500, "the first bursts")
        found = asked.result()
        assert set(found) == {(client, BURST_WORDS) for client in bench.clients}, f"{1 << bit} bytes: {found}"
        bench.cases += 1
        await bench.reset()


@bench_test(MemoryBench)
async def errors(bench: MemoryBench) -> None:
    """A packet with a word that memory refuses reports it, all its words come, and the next packet is unaffected."""
    base = bench.memory.base
    bench.memory.faulty = range(base + 4096, base + 4097)
    good, bad = [Piece(base + 100, 700, 3)], [Piece(base + 4000, 200, 0), Piece(base, 64, 0)]
    results = await _read(bench, [[good, bad, good], [bad, good, bad]])
    assert results == [[0, 1, 0], [1, 0, 1]]
    bench.cases += 6


@bench_test(MemoryBench)
async def boundaries(bench: MemoryBench) -> None:
    """Segments across a boundary of 4 KiB that begin at each word before it."""
    results = await _read(bench, [[[one] for one in bench.at_boundary(client)] for client in bench.clients])
    assert not any(any(one) for one in results), "memory has refused a burst"


@bench_test(MemoryBench)
async def turns(bench: MemoryBench) -> None:
    """Clients that begin together have their bursts in turns."""
    asked = cocotb.start_soon(bench.requests("ar", len(bench.clients)))
    await _read(bench, [[[Piece(bench.memory.base + 8192 * client, 64 * bench.size, 0)]] for client in bench.clients])
    first = [client for client, _ in await asked]
    assert sorted(first) == list(bench.clients), f"the first bursts are of clients {first}"
    bench.cases += 1


@bench_test(MemoryBench)
async def rate(bench: MemoryBench) -> None:
    """With a latency of 20 cycles a long segment keeps the port busy: many bursts are in progress."""
    bench.memory.latency = 20
    words = 512
    before = bench.cycle
    await _read(bench, [[[Piece(bench.memory.base, words * bench.size, 0)]], []])
    cycles = bench.cycle - before
    bench.figures["long segment"] = f"{words} words in {cycles} cycles"
    assert cycles < 1.3 * words + 80, f"{words} words took {cycles} cycles"
