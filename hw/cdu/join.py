"""Connections that ``amaranth.lib.wiring.connect`` does not make."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Module
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, connect, flipped


def join(m: Module, source: stream.Interface, sink: stream.Interface) -> None:
    """Connect two streams, also under a condition.

    Rows of integers of different width are extended, or cut where they are known to fit.
    """
    m.d.comb += [sink.valid.eq(source.valid), source.ready.eq(sink.ready)]
    if isinstance(sink.payload.shape(), data.ArrayLayout):
        m.d.comb += [ours.eq(theirs) for ours, theirs in zip(sink.payload, source.payload, strict=True)]
    else:
        m.d.comb += sink.payload.eq(source.payload)


def join_ports(m: Module, port: Any, inner: Any, without: str = "") -> None:
    """Connect the members of the interface ``port`` to those of the same names of ``inner``, all but one."""
    for name, member in port.signature.members.items():
        if name == without:
            continue
        ours, theirs = getattr(port, name), getattr(inner, name)
        if member.is_signature:
            connect(m, *((flipped(ours), theirs) if member.flow is In else (theirs, flipped(ours))))
        else:
            m.d.comb += theirs.eq(ours) if member.flow is In else ours.eq(theirs)
