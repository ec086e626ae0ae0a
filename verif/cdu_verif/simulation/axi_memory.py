"""Memory at an AXI4 port, by cocotbext-axi: latency, pauses on every channel, addresses with error responses or none."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import cocotb
from cocotb.queue import Queue
from cocotb.triggers import ClockCycles, Event
from cocotb.utils import get_sim_time
from cocotbext.axi import AxiReadBus, AxiResp, AxiSlaveRead, AxiSlaveWrite, AxiWriteBus

from cdu_verif.simulation.bench import CLOCK_NS
from cdu_verif.simulation.patterns import Pattern
from cdu_verif.simulation.reset import Reset


class AxiMemory:
    """Memory of ``size`` bytes from address ``base`` on, at the halves of the port ``prefix`` that a top has.

    An access outside, or to :attr:`faulty` addresses, is answered with :attr:`error`. An access to :attr:`silent` addresses is
    not answered, nor any later one, until a reset. Bursts across 4 KiB, WLAST elsewhere than at the end of a burst and other
    breaches of the protocol are found by cocotbext-axi and fail the test.

    Parameters
    ----------
    dut
        cocotb's handle of the top.
    prefix
        Name of the port without ``_arvalid``.
    size, base
        Number of bytes, and the address of the first one.
    """

    def __init__(self, dut: Any, prefix: str, size: int, base: int = 0) -> None:
        for channel in ("", "_aw", "_w", "_b", "_ar", "_r"):
            logging.getLogger(f"cocotb.{dut._name}.{prefix}{channel}").setLevel(logging.ERROR)
        self.base, self.bytes = base, bytearray(size)
        self.faulty: range = range(0)
        self.silent: range = range(0)
        self.error = AxiResp.SLVERR
        self.places: list[range] | None = None  #: all addresses that may be accessed; None: every address
        self.strays: list[str] = []  #: accesses elsewhere
        self.bursts = 0  #: number of bursts read so far
        reset = Reset(dut).axi()
        self._latency = 0
        self._channels: list[Any] = []
        if hasattr(dut, f"{prefix}_arvalid"):
            read = AxiSlaveRead(AxiReadBus.from_prefix(dut, prefix), dut.clk, target=self, **reset)
            self._channels += [read.ar_channel, read.r_channel]
            read.ar_channel.queue_occupancy_limit = read.r_channel.queue_occupancy_limit = 8
            read.ar_channel = _Delayed(read.ar_channel, self, dut.clk)
            self._answer(read.r_channel, "rresp")
        if hasattr(dut, f"{prefix}_awvalid"):
            write = AxiSlaveWrite(AxiWriteBus.from_prefix(dut, prefix), dut.clk, target=self, **reset)
            self._channels += [write.aw_channel, write.w_channel, write.b_channel]
            write.b_channel.queue_occupancy_limit = 8
            self._answer(write.b_channel, "bresp")
            _send_later(write.b_channel, self, dut.clk)

    def _answer(self, channel: Any, name: str) -> None:
        """Let a channel of responses carry this memory's errors; cocotbext-axi knows SLVERR only."""
        send = channel.send

        async def answered(item: Any) -> None:
            if getattr(item, name) != AxiResp.OKAY:
                setattr(item, name, self.error)
            await send(item)

        channel.send = answered

    def stall(self, patterns: Iterator[Pattern]) -> None:
        """Let every channel transfer in the cycles of its pattern."""
        for channel, pattern in zip(self._channels, patterns, strict=False):
            channel.set_pause_generator(not willing for willing in pattern)

    @property
    def latency(self) -> int:
        """Least cycles from the request of a read to its first word, and from the last word of a write to its response.

        Further requests and words are accepted meanwhile.
        """
        return self._latency

    @latency.setter
    def latency(self, cycles: int) -> None:
        self._latency = cycles

    def put(self, address: int, content: bytes) -> None:
        """Write without the port."""
        begin = address - self.base
        assert 0 <= begin <= len(self.bytes) - len(content), f"{address:#x} is not in this memory"
        self.bytes[begin : begin + len(content)] = content

    def get(self, address: int, size: int) -> bytes:
        """Read without the port."""
        begin = address - self.base
        assert 0 <= begin <= len(self.bytes) - size, f"{address:#x} is not in this memory"
        return bytes(self.bytes[begin : begin + size])

    async def read(self, address: int, size: int) -> bytes:
        """Return bytes for a word; cocotbext-axi calls this method for every word."""
        self._look("read", address, any(_touches(place, address, size) for place in self.places or ()))
        await self._check(address, size)
        return self.get(address, size)

    async def write(self, address: int, content: bytes) -> None:
        """Store bytes; cocotbext-axi calls this method for every run of bytes that a word enables."""
        end = address + len(content)
        self._look("write", address, any(place.start <= address and end <= place.stop for place in self.places or ()))
        await self._check(address, len(content))
        self.put(address, content)

    def _look(self, kind: str, address: int, allowed: bool) -> None:
        """Note a read of a word of which nothing may be read, or a write that is not wholly allowed."""
        if self.places is not None and not allowed:
            self.strays.append(f"a {kind} at {address:#x}")

    async def _check(self, address: int, size: int) -> None:
        if _touches(self.silent, address, size):
            await Event().wait()
        inside = self.base <= address and address + size <= self.base + len(self.bytes)
        if not inside or _touches(self.faulty, address, size):
            raise ValueError(f"no memory at {address:#x}")


def _touches(places: range, address: int, size: int) -> bool:
    return address < places.stop and address + size > places.start


class _Waiting:
    """Queue of items with the times at which they came; each is due after the latency of the memory."""

    def __init__(self, memory: AxiMemory, clock: Any) -> None:
        self._memory, self._clock = memory, clock
        self._queue: Queue[tuple[float, Any]] = Queue()

    def put(self, thing: Any) -> None:
        """Append an item, which comes now."""
        self._queue.put_nowait((get_sim_time("ns"), thing))

    async def get(self) -> Any:
        """Return the next item, once it is due."""
        since, thing = await self._queue.get()
        left = self._memory.latency - round((get_sim_time("ns") - since) / CLOCK_NS)
        if left > 0:
            await ClockCycles(self._clock, left)
        return thing

    def clear(self) -> None:
        """Drop all items."""
        while not self._queue.empty():
            self._queue.get_nowait()


class _Delayed:
    """Channel of requests, each of which is seen after the latency of the memory."""

    def __init__(self, channel: Any, memory: AxiMemory, clock: Any) -> None:
        self._channel, self._memory, self._waiting = channel, memory, _Waiting(memory, clock)
        self.recv = self._waiting.get
        cocotb.start_soon(self._take())

    @property
    def bus(self) -> Any:
        """Return the bus of the channel."""
        return self._channel.bus

    async def _take(self) -> None:
        while True:
            request = await self._channel.recv()
            self._memory.bursts += 1
            self._waiting.put(request)

    def clear(self) -> None:
        """Drop all waiting requests (reset)."""
        self._channel.clear()
        self._waiting.clear()


def _send_later(channel: Any, memory: AxiMemory, clock: Any) -> None:
    """Delay the responses of a channel by the latency of the memory."""
    waiting, send, clear = _Waiting(memory, clock), channel.send, channel.clear

    async def take() -> None:
        while True:
            await send(await waiting.get())

    async def given(answer: Any) -> None:
        waiting.put(answer)

    def forgotten() -> None:
        clear()
        waiting.clear()

    channel.send, channel.clear = given, forgotten
    cocotb.start_soon(take())
