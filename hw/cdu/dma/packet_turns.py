"""Clients that take turns at a reader or a writer of memory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from amaranth.hdl import Array, Cat, Module, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect


class PacketTurns(wiring.Component):
    """Several clients at one :class:`~cdu.dma.memory_reader.MemoryReader` or writer, one packet at a time.

    From its first segment on until the result of its packet a client has the other end to itself. The one behind the last that
    had it goes first. A client that does not take its words keeps the others waiting.

    Parameters
    ----------
    streams
        The streams of that end as it has them, ``segments`` and ``result`` among them, by name.
    clients
        How many clients.

    Ports
    -----
    NAME
        Of each stream an array: to the clients.
    shared_NAME
        To the end that they share.
    client
        The client that has the other end, or had it last.

    The first segment of a packet waits for one cycle, and nothing else does.
    """

    segments: Any
    shared_result: Any
    client: Signal

    def __init__(self, streams: Mapping[str, wiring.Member], clients: int) -> None:
        self.streams = streams
        ours = {name: member.array(clients) for name, member in streams.items()}
        shared = {f"shared_{name}": member.flip() for name, member in streams.items()}
        super().__init__(ours | shared | {"client": Out(range(clients))})

    def join(self, m: Module, end: Mapping[str, stream.Interface]) -> None:
        """Connect the end that is shared, by the names of its streams."""
        for name, member in self.streams.items():
            ours = getattr(self, f"shared_{name}")
            connect(m, *((ours, end[name]) if member.flow is In else (end[name], ours)))

    def elaborate(self, platform: object) -> Module:
        m = Module()
        count = len(self.segments)
        held = Signal()
        client = self.client
        has = [held & (client == number) for number in range(count)]
        for name, member in self.streams.items():
            clients, shared = getattr(self, name), getattr(self, f"shared_{name}")
            if member.flow is In:
                m.d.comb += [
                    Value.cast(shared.payload).eq(Array(Value.cast(one.payload) for one in clients)[client]),
                    shared.valid.eq(held & Array(one.valid for one in clients)[client]),
                    *(one.ready.eq(mine & shared.ready) for one, mine in zip(clients, has, strict=True)),
                ]
            else:
                m.d.comb += [
                    *(one.payload.eq(shared.payload) for one in clients),
                    *(one.valid.eq(mine & shared.valid) for one, mine in zip(clients, has, strict=True)),
                    shared.ready.eq(held & Array(one.ready for one in clients)[client]),
                ]
        asks = Cat(segments.valid for segments in self.segments)
        with m.If(~held):
            m.d.sync += held.eq(asks.any())
            with m.Switch(client):
                for last in range(count):
                    with m.Case(last):
                        # The last of several assignments takes effect: the next client in turn.
                        for distance in range(count, 0, -1):
                            number = (last + distance) % count
                            with m.If(asks[number]):
                                m.d.sync += client.eq(number)
        with m.If(self.shared_result.valid & self.shared_result.ready):
            m.d.sync += held.eq(0)
        return m
