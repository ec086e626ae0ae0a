"""Cases of the blocks that append a CRC-32 to payloads and check it; the CRC is zlib's."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

import torch
from cdu_spec.bitstream import CRC_BYTES
from cdu_spec.config import CduConfig
from cdu_spec.geometry import BLOCK_VALUES

from cdu_verif.cases.block_streams import cut_words
from cdu_verif.cases.case import Case, Cases
from cdu_verif.content.values import words
from cdu_verif.simulation.ports import Ports


@dataclass(frozen=True)
class _Packet:
    """A payload, the bytes of its words at a writer's output or a checker's input, and the CRC if it has one."""

    payload: bytes
    counts: Sequence[int]
    crc: bytes = b""

    @property
    def is_wrong(self) -> bool:
        """Return whether the CRC is not the payload's."""
        return bool(self.crc) and self.crc != crc_of(self.payload)


def crc_of(payload: bytes) -> bytes:
    """Return the four bytes of a payload's CRC."""
    return zlib.crc32(payload).to_bytes(CRC_BYTES, "little")


class _Crc(Cases):
    event_ports = ("bad_crc",)
    settling = 4

    def __init__(self, checks: bool) -> None:
        self.checks = checks

    def case(self, ports: Ports, name: str, packets: Sequence[_Packet], steady: tuple[str, ...] = ()) -> Case:
        """Return a case of packets one after the other."""
        size = _size(ports)
        cut, ends = (self._checked, ("o", "i")) if self.checks else (self._written, ("i", "o"))
        streams: dict[str, list[int]] = {"i": [], "o": []}
        for packet in packets:
            bare, signed = cut(packet, size)
            streams[ends[0]] += cut_words(ports, ends[0], packet.payload, bare)
            streams[ends[1]] += cut_words(ports, ends[1], packet.payload + packet.crc, signed)
        jobs = words(ports, "job", values=torch.tensor([bool(packet.crc) for packet in packets]).long())
        wrong = sum(packet.is_wrong for packet in packets)
        return Case(
            name,
            {"job": jobs, "i": streams["i"]},
            {"o": streams["o"]},
            events={"bad_crc": wrong} if self.checks and wrong else {},
            steady=steady,
        )

    def _written(self, packet: _Packet, size: int) -> tuple[list[int], list[int]]:
        """Return the bytes of the words without and with the CRC, which fills the last word and another one if necessary."""
        *front, last = packet.counts
        total = last + len(packet.crc)
        return [*packet.counts], [*front, min(total, size), *([total - size] if total > size else [])]

    def _checked(self, packet: _Packet, size: int) -> tuple[list[int], list[int]]:
        """Return the bytes of a checker's words with and without the CRC; it holds the last bytes so far back."""
        bare, held = [], 0
        for place, count in enumerate(packet.counts):
            there = held + count
            leaving = max(there - len(packet.crc), 0)
            if leaving or place == len(packet.counts) - 1:
                bare.append(leaving)
            held = there - leaving
        return bare, [*packet.counts]

    def packet(self, rng: Random, size: int, count: int, *, signed: bool = True, full: bool = True) -> _Packet:
        """Return a payload of ``count`` random bytes, in full words or in words of any number of bytes."""
        payload = rng.randbytes(count)
        crc = crc_of(payload) if signed else b""
        left = count + (len(crc) if self.checks else 0)
        counts: list[int] = []
        while left or not counts:
            counts.append(min(left, size if full else rng.choice((size, rng.randint(1, size), rng.randint(1, 3)))))
            left -= counts[-1]
        return _Packet(payload, counts, crc)

    def corners(self, config: CduConfig, ports: Ports, rng: Random) -> list[Case]:
        """Return lengths around those of words, with and without a CRC in turn; words of a byte each; words of no bytes."""
        size = _size(ports)
        lengths = [*range(1, 2 * size + 6)]
        packets = [self.packet(rng, size, count, signed=count % 3 != 0) for count in lengths]
        bytewise = [_Packet(one.payload, [1] * sum(one.counts), one.crc) for one in packets[:24]]
        cases = [
            self.case(ports, "lengths", packets),
            self.case(ports, "bytes_by_themselves", bytewise),
            self.case(ports, "ones", [self._constant(size, b"\xff", count) for count in lengths[::3]]),
            self.case(ports, "nothing", [self.packet(rng, size, 0), self.packet(rng, size, 0, signed=False)]),
        ]
        return [*cases, *self._damaged(ports, rng, size)] if self.checks else cases

    def _constant(self, size: int, byte: bytes, count: int) -> _Packet:
        """Return a packet of ``count`` equal bytes in full words."""
        return _Packet(byte * count, self.packet(Random(0), size, count).counts, crc_of(byte * count))

    def _damaged(self, ports: Ports, rng: Random, size: int) -> list[Case]:
        """Return packets with inverted bits (each one, and pairs) or a swapped CRC, between good ones; too short ones."""
        whole = self.packet(rng, size, size + 3)
        stream = whole.payload + whole.crc
        flipped = [_flipped(stream, (place,)) for place in range(8 * len(stream))]
        flipped += [_flipped(stream, rng.sample(range(8 * len(stream)), 2)) for _ in range(40)]
        swapped = whole.payload + whole.crc[::-1]
        wrong = [_Packet(bad[:-CRC_BYTES], whole.counts, bad[-CRC_BYTES:]) for bad in (*flipped, swapped)]
        packets = [packet for bad in wrong for packet in ((bad, whole) if rng.randint(0, 3) == 0 else (bad,))]
        short = [_Packet(b"", [count], rng.randbytes(count)) for count in range(1, CRC_BYTES)]
        return [self.case(ports, "damaged", packets), self.case(ports, "too_short", [*short, whole])]

    def random(self, config: CduConfig, ports: Ports, rng: Random, blocks: int) -> Case:
        """Return packets of any length, some without a CRC, some with a wrong one."""
        size, packets = _size(ports), []
        for _ in range(blocks):
            count, signed, full = rng.randint(1, 2 * BLOCK_VALUES), rng.randint(0, 3) > 0, rng.randint(0, 1) > 0
            one = self.packet(rng, size, count, signed=signed, full=full)
            if self.checks and one.crc and rng.randint(0, 3) == 0:
                one = _Packet(one.payload, one.counts, rng.randbytes(CRC_BYTES))
            packets.append(one)
        return self.case(ports, "random", packets)

    def steady(self, config: CduConfig, ports: Ports, rng: Random, blocks: int) -> list[Case]:
        """Return a long packet of full words, with a CRC that fits into the last one and with one that does not."""
        size = _size(ports)
        lengths = {"fits": blocks * size - CRC_BYTES, "spills": blocks * size - 1}
        return [self.case(ports, name, [self.packet(rng, size, count)], ("i", "o")) for name, count in lengths.items()]


def _size(ports: Ports) -> int:
    """Return M, the bytes per word."""
    (width,) = (field["width"] for field in ports["i__payload"]["fields"] if field["name"] == "data")
    return int(width) // 8


def _flipped(content: bytes, places: Sequence[int]) -> bytes:
    """Return the bytes with the bits at ``places`` inverted."""
    number = int.from_bytes(content, "little")
    for place in places:
        number ^= 1 << place
    return number.to_bytes(len(content), "little")


CRC_WRITER, CRC_CHECKER = _Crc(checks=False), _Crc(checks=True)
