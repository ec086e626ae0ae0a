"""Other ends of an array's ports, by cocotbext-axi: streams of whole words, stalls on every channel, a watch of every port."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from random import Random
from typing import Any

import cocotb
from cdu_spec.ports import REGISTER_PORT
from cocotb.triggers import RisingEdge
from cocotbext.axi import AxiLiteBus, AxiLiteMaster, AxiStreamBus, AxiStreamFrame, AxiStreamSink, AxiStreamSource

from cdu_verif.simulation.clocks import clock_of, own
from cdu_verif.simulation.handshake import HandshakeMonitor
from cdu_verif.simulation.patterns import Pattern
from cdu_verif.simulation.reset import Reset

#: The response of AXI4 to an access that is refused.
SLVERR = 2
#: A word at a port: TDATA and TKEEP.
Word = tuple[int, int]


class WordBus(AxiStreamBus):  # type: ignore[misc]  # the package has no types
    """Port whose smallest unit is the whole word.

    cocotbext-axi handles data byte by byte, which takes most of the time of a simulation with wide ports. Here a word is one
    element of a frame, and its TKEEP is handled like TUSER: any mask can be sent and received.
    """

    _signals: Any = ("tdata",)
    _optional_signals: Any = {"tvalid": "tvalid", "tready": "tready", "tlast": "tlast", "tuser": "tkeep"}  # noqa: RUF012


def words_of(raw: bytes, size: int) -> list[Word]:
    """Return bytes as words of ``size`` bytes, first byte lowest; the last word may be partial."""
    words = []
    for begin in range(0, len(raw), size):
        part = raw[begin : begin + size]
        words.append((int.from_bytes(part, "little"), (1 << len(part)) - 1))
    return words


def bytes_of(words: Sequence[Word]) -> bytes:
    """Return the kept bytes of words; AssertionError for a TKEEP with holes."""
    parts = []
    for data, keep in words:
        count = keep.bit_length()
        assert keep == (1 << count) - 1, f"TKEEP {keep:#x} has holes"
        assert data >> (8 * count) == 0, "bytes that are not kept are not zero"
        parts.append(data.to_bytes(count, "little"))
    return b"".join(parts)


class StreamIn:
    """Port that receives: packets of words are sent to it.

    Parameters
    ----------
    dut
        cocotb's handle of the top.
    prefix
        Name of the port without ``_tdata``.
    """

    def __init__(self, dut: Any, prefix: str) -> None:
        _quiet(dut, prefix)
        self.prefix = prefix
        self.size = len(getattr(dut, f"{prefix}_tkeep"))  #: bytes per word
        bus = WordBus.from_prefix(dut, prefix, case_insensitive=False)
        self._source = AxiStreamSource(bus, clock_of(dut, prefix), byte_lanes=1, **Reset(dut).axi())

    def send(self, raw: bytes) -> None:
        """Queue one packet: full words, then the rest with TLAST."""
        self.send_words(words_of(raw, self.size))

    def send_words(self, words: Sequence[Word]) -> None:
        """Queue one packet of at least one word; TLAST comes with its last one."""
        self._source.send_nowait(AxiStreamFrame([data for data, _ in words], tuser=[keep for _, keep in words]))

    def stall(self, pattern: Pattern) -> None:
        """Offer words in the cycles of the pattern."""
        self._source.set_pause_generator(not willing for willing in pattern)

    def free(self) -> None:
        """Offer words in every cycle."""
        self._source.clear_pause_generator()
        self._source.pause = False

    def idle(self) -> bool:
        """Return whether all queued words have been transferred."""
        return bool(self._source.idle())

    def forget(self) -> None:
        """Drop the packets that have not begun."""
        self._source.clear()


class StreamOut:
    """Port that sends: packets of words are received from it."""

    def __init__(self, dut: Any, prefix: str) -> None:
        _quiet(dut, prefix)
        self.prefix = prefix
        self.size = len(getattr(dut, f"{prefix}_tkeep"))  #: bytes per word
        bus = WordBus.from_prefix(dut, prefix, case_insensitive=False)
        clock = clock_of(dut, prefix)
        self._sink = AxiStreamSink(bus, clock, byte_lanes=1, **Reset(dut).axi())
        self._valid, self._edge = bus.tvalid, RisingEdge(clock)

    async def receive_words(self) -> list[Word]:
        """Return the words of the next packet."""
        frame = await self._sink.recv(compact=False)
        return list(zip(frame.tdata, frame.tuser, strict=True))

    async def receive(self) -> bytes:
        """Return the bytes of the next packet; AssertionError if a word before its last one is not full."""
        words = await self.receive_words()
        full = (1 << self.size) - 1
        assert all(keep == full for _, keep in words[:-1]), f"{self.prefix}: a partial word in the middle of a packet"
        return bytes_of(words)

    def stall(self, pattern: Pattern) -> None:
        """Accept words in the cycles of the pattern."""
        self._sink.set_pause_generator(not willing for willing in pattern)

    def free(self) -> None:
        """Accept words in every cycle."""
        self._sink.clear_pause_generator()
        self._sink.pause = False

    async def at_rest(self, cycles: int = 4) -> bool:
        """Return whether no packet is in progress and none is offered, for some cycles."""
        for _ in range(cycles):
            await self._edge
            if int(self._valid.value) or self._sink.active:
                return False
        return True

    def waiting(self) -> int:
        """Return the number of packets that were received but not asked for."""
        return int(self._sink.count())

    def forget(self) -> None:
        """Drop the received packets."""
        self._sink.clear()


class Registers:
    """AXI4-Lite port: reads and writes of 32-bit registers."""

    def __init__(self, dut: Any, prefix: str = "s_axil") -> None:
        _quiet(dut, *(f"{prefix}_{channel}" for channel in ("aw", "w", "b", "ar", "r")), prefix)
        self._master = AxiLiteMaster(AxiLiteBus.from_prefix(dut, prefix), clock_of(dut, prefix), **Reset(dut).axi())
        write, read = self._master.write_if, self._master.read_if
        self._write, self._read = write, read
        self._channels = (write.aw_channel, write.w_channel, write.b_channel, read.ar_channel, read.r_channel)

    async def read(self, address: int) -> int:
        """Return a register."""
        response = await self._master.read(address, 4)
        return int.from_bytes(response.data, "little")

    async def write(self, address: int, value: int) -> int:
        """Write a register and return the response code (0 is OKAY)."""
        return await self.write_bytes(address, value.to_bytes(4, "little"))

    async def write_bytes(self, address: int, data: bytes) -> int:
        """Write some bytes of a register and return the response code."""
        response = await self._master.write(address, data)
        return int(response.resp)

    async def raw_write(self, address: int, value: int) -> int:
        """Write 4 bytes at any address, aligned or not, and return the response code."""
        there, what = self._write.aw_channel._transaction_obj(), self._write.w_channel._transaction_obj()
        there.awaddr, there.awprot, what.wdata, what.wstrb = address, 0, value, 0b1111
        await self._write.aw_channel.send(there)
        await self._write.w_channel.send(what)
        return int((await self._write.b_channel.recv()).bresp)

    async def raw_read(self, address: int) -> tuple[int, int]:
        """Return the 4 bytes that a read of any address gives, aligned or not, and the response code."""
        there = self._read.ar_channel._transaction_obj()
        there.araddr, there.arprot = address, 0
        await self._read.ar_channel.send(there)
        answer = await self._read.r_channel.recv()
        return int(answer.rdata), int(answer.rresp)

    async def write_many(self, address: int, values: Sequence[int]) -> None:
        """Write consecutive registers, with several writes in progress at a time."""
        await self._master.write(address, b"".join(value.to_bytes(4, "little") for value in values))

    def stall(self, patterns: Iterator[Pattern]) -> None:
        """Let each of the five channels transfer in the cycles of its pattern."""
        for channel, pattern in zip(self._channels, patterns, strict=False):
            channel.set_pause_generator(not willing for willing in pattern)


class Watch:
    """Watch one channel in every cycle: its transfers, and on outputs that valid and payload hold until the transfer."""

    def __init__(self, dut: Any, valid: str, ready: str, payload: Sequence[str] = ()) -> None:
        self._valid, self._ready = getattr(dut, valid), getattr(dut, ready)
        self._payload = [getattr(dut, name) for name in payload]
        self._monitor = HandshakeMonitor(valid.removesuffix("valid").rstrip("_")) if payload else None
        self.transfers: list[int] = []  #: cycle of every transfer
        self.waits = 0  #: cycles with valid and without ready

    def sample(self, cycle: int) -> None:
        """Sample one cycle, at its closing edge."""
        # Reading a signal takes most of the time of a simulation, so that only needed signals are read.
        valid = bool(int(self._valid.value))
        ready = valid and bool(int(self._ready.value))
        if ready:
            self.transfers.append(cycle)
        elif valid:
            self.waits += 1
        if self._monitor is not None:
            bits = 0
            for handle in self._payload if valid and (self._monitor.waiting or not ready) else ():
                bits = bits << len(handle) | int(handle.value)
            self._monitor.check(valid, ready, bits)

    def forget(self) -> None:
        """Note a reset: no payload is waiting."""
        if self._monitor is not None:
            self._monitor.forget()

    def clear(self) -> None:
        """Forget earlier transfers."""
        self.transfers.clear()
        self.waits = 0


class Watches:
    """Watches of all ports of a unit, by the name of the port."""

    def __init__(self, dut: Any, streams: Sequence[tuple[str, bool]]) -> None:
        self._dut = dut
        self.cycle = 0
        self.of = {
            name: Watch(
                dut, f"{name}_tvalid", f"{name}_tready", [f"{name}_t{part}" for part in ("data", "keep", "last")] * sends
            )
            for name, sends in streams
        }
        self.of["s_axil_b"] = Watch(dut, "s_axil_bvalid", "s_axil_bready", ["s_axil_bresp"])
        self.of["s_axil_r"] = Watch(dut, "s_axil_rvalid", "s_axil_rready", ["s_axil_rdata", "s_axil_rresp"])

    async def run(self) -> None:
        """Sample every cycle of ``clk``, and of each other clock, until the test ends."""
        clocks = {name: clock_of(self._dut, REGISTER_PORT if name.startswith(REGISTER_PORT) else name) for name in self.of}
        for clock in own(self._dut).values():
            cocotb.start_soon(self._sample(clock, [self.of[name] for name, its in clocks.items() if its is clock]))
        await self._sample(self._dut.clk, [self.of[name] for name, its in clocks.items() if its is self._dut.clk], counts=True)

    async def _sample(self, clock: Any, watches: Sequence[Watch], counts: bool = False) -> None:
        edge, reset = RisingEdge(clock), Reset(self._dut)
        while True:
            await edge
            self.cycle += counts
            if reset.is_active():
                for watch in watches:
                    watch.forget()
                continue
            for watch in watches:
                watch.sample(self.cycle)


def _quiet(dut: Any, *names: str) -> None:
    """Reduce the log of the ends of these ports to warnings."""
    for name in names:
        logging.getLogger(f"cocotb.{dut._name}.{name}").setLevel(logging.WARNING)


def random_patterns(rng: Random, maker: Any) -> Iterator[Pattern]:
    """Yield independent patterns without end."""
    while True:
        yield maker(rng)
