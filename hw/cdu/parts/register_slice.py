"""Register slices, which cut the paths of ``valid`` and ``ready`` from block to block for a shorter clock period."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Module
from amaranth.lib import stream
from amaranth.lib.wiring import connect
from cdu_spec.config import CduConfig

from cdu.parts.stream_fifo import StreamFifo

#: Payloads in a slice: two, so that it gives and takes one in every cycle although ``ready`` comes a cycle late.
_DEPTH = 2


def register_slice(shape: Any) -> StreamFifo:
    """Return a queue for payloads of ``shape`` without a combinational path of valid, payload or ready through it."""
    return StreamFifo(shape, _DEPTH)


def sliced(m: Module, config: CduConfig, name: str, source: stream.Interface) -> stream.Interface:
    """Return a stream behind a register slice of that name, with ``register_slices``; else the stream itself."""
    if not config.register_slices:
        return source
    m.submodules[name] = queue = register_slice(source.payload.shape())
    connect(m, source, queue.i)
    return queue.o
