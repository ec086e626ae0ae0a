"""Tests of the writing half of an AXI4 port: packets, segments, and what is in memory afterwards."""

from __future__ import annotations

from dataclasses import dataclass

import cocotb
from cdu.dma.axi4 import BOUNDARY_BYTES, BURST_WORDS
from cdu_spec.dma import SIZE_BITS
from cdu_spec.port_fields import pack, unpack

from cdu_verif.benches.memory_bench import MEMORY_BYTES, MemoryBench, MemoryPiece
from cdu_verif.simulation.bench_test import bench_test
from cdu_verif.simulation.patterns import PATTERNS


@dataclass(frozen=True)
class _Packet:
    pieces: list[MemoryPiece]
    content: bytes
    empty_end: bool = False  #: its last byte and its end are in two words


def _golden(memory: bytearray, base: int, packet: _Packet) -> bool:
    """Put a packet where it belongs; whether something is left of it."""
    rest = packet.content
    for one in packet.pieces:
        part, rest = rest[: one.bytes], rest[one.bytes :]
        memory[one.address - base : one.address - base + len(part)] = part
        rest = rest[one.pad :]
    return bool(rest)


async def _write(bench: MemoryBench, packets: list[list[_Packet]], cycles: int = 60) -> list[list[dict[str, int]]]:
    """Write packets, those of each client one after the other, compare the memory; the results of each client."""
    golden = bytearray(bench.memory.bytes)
    surplus = []
    for client, wanted in enumerate(packets):
        bench.sinks[f"result__{client}"].received.clear()
        port = bench.ports[f"i__{client}__payload"]
        for packet in wanted:
            bench.send_segments(client, packet.pieces)
            begins = range(0, max(1, len(packet.content)), bench.size)
            parts = [packet.content[begin : begin + bench.size] for begin in begins] + [b""] * packet.empty_end
            bench.sources[f"i__{client}"].send(
                pack(port, {"data": int.from_bytes(part, "little"), "count": len(part), "last": place == len(parts)})
                for place, part in enumerate(parts, 1)
            )
        surplus.append([_golden(golden, bench.memory.base, packet) for packet in wanted])
    work = sum(len(packet.content) + bench.size * (1 + len(packet.pieces)) for wanted in packets for packet in wanted)
    await bench.run(
        lambda: all(len(bench.sinks[f"result__{client}"].received) >= len(wanted) for client, wanted in enumerate(packets)),
        2000 + cycles * work // bench.size,
        "packets",
    )
    results = []
    for client, wanted in enumerate(packets):
        port = bench.ports[f"result__{client}__payload"]
        found = [unpack(port, bits) for bits in bench.sinks[f"result__{client}"].received]
        assert [one["bytes"] for one in found] == [len(packet.content) for packet in wanted]
        assert [bool(one["surplus"]) for one in found] == surplus[client]
        results.append(found)
        bench.cases += len(wanted)
    if not bench.memory.faulty:
        assert not any(one["failed"] for found in results for one in found), "memory has refused a burst"
        differs = [place for place, (got, right) in enumerate(zip(bench.memory.bytes, golden, strict=True)) if got != right]
        assert not differs, f"{len(differs)} bytes differ, first at {differs[0]:#x}"
    return results


def _packet(bench: MemoryBench, begin: int, end: int) -> _Packet:
    """Segments that share no byte, and a packet that is as long, shorter or longer."""
    pieces = bench.pieces(bench.rng.randint(1, 5), begin, end, apart=True)
    length = sum(one.bytes + one.pad for one in pieces)
    other = bench.rng.choice((length, length, bench.rng.randint(0, length), length + bench.rng.randint(1, 3 * bench.size)))
    return _Packet(pieces, bench.rng.randbytes(other), bench.rng.random() < 0.3)


@bench_test(MemoryBench, pattern=list(PATTERNS))
async def packets(bench: MemoryBench, pattern: str) -> None:
    """Packets of any length, both clients at once, every end stalled at random by itself."""
    bench.behave(pattern)
    bench.memory.latency = bench.rng.choice((0, 10, 100))
    for _ in range(4 if bench.full else 1):
        places = [MEMORY_BYTES * number // 8 for number in range(9)]
        wanted = [
            [_packet(bench, begin, end) for begin, end in zip(places[client::2], places[client + 1 :: 2], strict=False)]
            for client in bench.clients
        ]
        results = await _write(bench, wanted)
        assert not any(one["failed"] for found in results for one in found)


@bench_test(MemoryBench)
async def empty_packets(bench: MemoryBench) -> None:
    """A packet of no bytes writes nothing and has a result; so has one whose segments are empty."""
    place = bench.memory.base
    nothing = _Packet([MemoryPiece(place, 700, 1), MemoryPiece(place, 9, 0)], b"")
    nowhere = _Packet([MemoryPiece(place, 0, 0)], bench.rng.randbytes(3 * bench.size))
    await _write(bench, [[nothing, nowhere, nothing], [nowhere, nothing, nowhere]])


@bench_test(MemoryBench)
async def empty_last_words(bench: MemoryBench) -> None:
    """Packets of whole words that end in an empty one, in segments with room for more: each writes at its own addresses."""
    words, apart = (1, 2, BURST_WORDS - 1, BURST_WORDS, BURST_WORDS + 1), BOUNDARY_BYTES // 2
    packets = []
    for client in bench.clients:
        place = bench.memory.base + MEMORY_BYTES // 2 * client
        pieces = [MemoryPiece(place + apart * number, (count + 1) * bench.size, 0) for number, count in enumerate(words)]
        packets.append([_Packet([one], bench.rng.randbytes(one.bytes - bench.size), empty_end=True) for one in pieces])
    await _write(bench, packets)


@bench_test(MemoryBench)
async def long_segments(bench: MemoryBench) -> None:
    """Segments of every power of two up to 2 GiB, of which the packet has no more than the first words."""
    packets = []
    for client in bench.clients:
        place = bench.memory.base + MEMORY_BYTES // 2 * client
        pieces = [MemoryPiece(place, 1 << bit, 0) for bit in range(SIZE_BITS)]
        packets.append([_Packet([one], bench.rng.randbytes(min(one.bytes, 3 * bench.size))) for one in pieces])
    await _write(bench, packets)


@bench_test(MemoryBench)
async def errors(bench: MemoryBench) -> None:
    """A packet of which memory refuses a burst says so, and the next one, which is written meanwhile, is not touched."""
    base = bench.memory.base
    bench.memory.latency = bench.rng.choice((0, 30, 200))
    bench.memory.faulty = range(base + 4096, base + 4097)
    good = _Packet([MemoryPiece(base + 100, 700, 3)], bench.rng.randbytes(703))
    bad = _Packet([MemoryPiece(base + 4000, 200, 0)], bench.rng.randbytes(200))
    results = await _write(bench, [[good, bad, good], [bad, good, bad]])
    assert [[one["failed"] for one in found] for found in results] == [[0, 1, 0], [1, 0, 1]]


@bench_test(MemoryBench)
async def boundaries(bench: MemoryBench) -> None:
    """Segments over a boundary of 4 KiB that begin at each word before it."""
    packets = [
        [_Packet([one], bench.rng.randbytes(one.bytes)) for one in bench.at_boundary(client)] for client in bench.clients
    ]
    await _write(bench, packets)


@bench_test(MemoryBench)
async def turns(bench: MemoryBench) -> None:
    """Clients that write all the time have their bursts in turns."""
    words, bursts = 128, 8
    asked = cocotb.start_soon(bench.requests("aw", bursts))
    pieces = [MemoryPiece(bench.memory.base + 8192 * client, words * bench.size, 0) for client in bench.clients]
    await _write(bench, [[_Packet([piece], bench.rng.randbytes(piece.bytes))] for piece in pieces])
    first = [client for client, _ in await asked]
    least = bursts // len(bench.clients) - 1
    assert all(first.count(client) >= least for client in bench.clients), f"the first bursts are of clients {first}"
    bench.cases += 1


@bench_test(MemoryBench)
async def rate(bench: MemoryBench) -> None:
    """A long packet keeps the port busy."""
    words = 512
    before = bench.cycle
    await _write(
        bench, [[_Packet([MemoryPiece(bench.memory.base, words * bench.size, 0)], bench.rng.randbytes(words * bench.size))], []]
    )
    cycles = bench.cycle - before
    bench.figures["long packet"] = f"{words} words in {cycles} cycles"
    assert cycles < 1.3 * words + 80, f"{words} words took {cycles} cycles"


@bench_test(MemoryBench)
async def packets_in_a_row(bench: MemoryBench) -> None:
    """Memory that answers late does not hold up the next packet, which is written before the one before it has its result."""
    count, words = 8, 64
    bench.memory.latency, before = words, bench.cycle
    pieces = [MemoryPiece(bench.memory.base + number * words * bench.size, words * bench.size, 0) for number in range(count)]
    await _write(bench, [[_Packet([piece], bench.rng.randbytes(piece.bytes)) for piece in pieces], []])
    cycles = bench.cycle - before
    bench.figures["packets in a row"] = f"{count} of {words} words in {cycles} cycles"
    assert cycles < 1.3 * words * count + bench.memory.latency + 80, f"{count} packets of {words} words took {cycles} cycles"
