"""Connections that ``amaranth.lib.wiring.connect`` does not make."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from functools import reduce
from operator import and_
from typing import Any

from amaranth.hdl import Const, Module, Mux, Value
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, connect, flipped

from cdu.parts.stream_fifo import StreamFifo


def join(m: Module, source: stream.Interface, sink: stream.Interface) -> None:
    """Connect two streams, also under a condition.

    Payloads are assigned as by :func:`assigned`.
    """
    m.d.comb += [sink.valid.eq(source.valid), source.ready.eq(sink.ready), *assigned(sink.payload, source.payload)]


def assigned(sink: Any, source: Any) -> Iterator[Any]:
    """Yield assignments of a payload to one that may have another layout.

    Rows of integers of different width are extended, or cut where they are known to fit; of structures, the fields of
    ``sink`` are taken.
    """
    shape = sink.shape()
    if shape == source.shape() or not isinstance(shape, data.Layout):
        yield sink.eq(source)
    elif isinstance(shape, data.ArrayLayout):
        for ours, theirs in zip(sink, source, strict=True):
            yield from assigned(ours, theirs)
    else:
        for name, _ in shape:
            yield from assigned(sink[name], source[name])


def join_ports(m: Module, port: Any, inner: Any, without: Collection[str] = ()) -> None:
    """Connect the members of the interface ``port`` to those of the same names of ``inner``, except for ``without``."""
    for name, member in port.signature.members.items():
        if name in without:
            continue
        ours, theirs = getattr(port, name), getattr(inner, name)
        if member.is_signature:
            connect(m, *((flipped(ours), theirs) if member.flow is In else (theirs, flipped(ours))))
        else:
            m.d.comb += theirs.eq(ours) if member.flow is In else ours.eq(theirs)


def join_in_order(m: Module, turns: stream.Interface, sources: Sequence[stream.Interface], sink: stream.Interface) -> None:
    """Connect the current source to ``sink``; taking a payload of ``turns`` selects the next one.

    ``turns`` has a bit for each source but the first, which is current if none is set.
    """
    first, *others = sources
    bits = list(turns.payload)
    payload, valid = first.payload.as_value(), first.valid
    for bit, other in zip(bits, others, strict=True):
        payload, valid = Mux(bit, other.payload.as_value(), payload), Mux(bit, other.valid, valid)
    m.d.comb += [
        sink.payload.eq(payload),
        sink.valid.eq(turns.valid & valid),
        first.ready.eq(reduce(and_, (~bit for bit in bits), turns.valid) & sink.ready),
        *(other.ready.eq(turns.valid & bit & sink.ready) for bit, other in zip(bits, others, strict=True)),
    ]


def split_in_order(
    m: Module, turns: stream.Interface, source: stream.Interface, sinks: tuple[stream.Interface, stream.Interface]
) -> None:
    """Connect ``source`` to the current sink, 0 or 1; taking a payload of ``turns`` selects the next one."""
    first, second = sinks
    m.d.comb += [
        *(sink.payload.eq(source.payload) for sink in sinks),
        first.valid.eq(source.valid & turns.valid & ~turns.payload),
        second.valid.eq(source.valid & turns.valid & turns.payload),
        source.ready.eq(turns.valid & Mux(turns.payload, second.ready, first.ready)),
    ]


def hand_out(m: Module, source: stream.Interface, queues: Sequence[tuple[stream.Interface, Value]]) -> None:
    """Give every payload of ``source`` to all queues whose condition holds, when all of them have room.

    The readiness of a queue must not depend on its valid, which depends on the readiness of the other queues but not on its
    own. A queue with a payload of another shape needs an assignment of its payload elsewhere.
    """
    ready = [queue.ready for queue, _ in queues]
    m.d.comb += source.ready.eq(reduce(and_, ready))
    for number, (queue, wanted) in enumerate(queues):
        m.d.comb += queue.valid.eq(reduce(and_, ready[:number] + ready[number + 1 :], source.valid & wanted))
        if queue.payload.shape() == source.payload.shape():
            m.d.comb += queue.payload.eq(source.payload)


def join_through(
    m: Module,
    source: stream.Interface,
    path: tuple[stream.Interface, stream.Interface],
    beside: StreamFifo,
    sink: stream.Interface,
) -> None:
    """Connect ``source`` to ``sink`` through a path that takes rows of values only, and gives one for each.

    Payloads of ``source`` and ``sink`` have the rows as ``values``; their other fields wait in the queue ``beside`` the path.
    No cycle is lost if it has room for all rows on the path and one more. Its readiness must not depend on its valid.
    """
    entrance, end = path
    hand_out(m, source, [(entrance, Const(1)), (beside.i, Const(1))])
    m.d.comb += [
        *assigned(entrance.payload, source.payload["values"]),
        *assigned(beside.i.payload, source.payload),
        *assigned(sink.payload["values"], end.payload),
        *(sink.payload[name].eq(beside.o.payload[name]) for name, _ in beside.o.payload.shape()),
        sink.valid.eq(end.valid & beside.o.valid),
        end.ready.eq(sink.ready & beside.o.valid),
        beside.o.ready.eq(sink.ready & end.valid),
    ]
