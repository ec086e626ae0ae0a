"""Both directions of N CDUs: side by side, or in turns with shared transforms and alignment buffer."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Module, Mux, ResetInserter, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect
from cdu_spec.config import CduConfig

from cdu.alignment.alignment_buffer import AlignmentBuffer, Direction
from cdu.parts.join import assigned, join, join_ports
from cdu.parts.register_slice import register_slice
from cdu.transform.two_way_dct import TwoWayDct
from cdu.unit.compression_path import CompressionPath, CompressorPorts
from cdu.unit.compressor import Compressor
from cdu.unit.decompression_path import DecompressionPath, DecompressorPorts
from cdu.unit.decompressor import Decompressor
from cdu.unit.direction import DirectionPorts

#: Signals of a direction beside its own ports.
_OF_HALF = {"abort": In, "held": Out}


class _HalfPorts(wiring.Signature):
    """Ports of a direction, with ``abort`` (forget all its jobs) and ``held`` (the other direction has its turn)."""

    def __init__(self, ports: DirectionPorts) -> None:
        super().__init__({**ports.members, **{name: flow(1) for name, flow in _OF_HALF.items()}})


class _Duplex(wiring.Component):
    """Both directions of N CDUs.

    Ports
    -----
    compress, decompress
        The ports of :class:`~cdu.unit.compressor.Compressor` and :class:`~cdu.unit.decompressor.Decompressor`, each with
        ``abort`` (forget all jobs of this direction) and ``held`` (the other direction has its turn).
    """

    compress: Any
    decompress: Any

    def __init__(self, config: CduConfig) -> None:
        self.config = config
        super().__init__(
            {"compress": Out(_HalfPorts(CompressorPorts(config))), "decompress": Out(_HalfPorts(DecompressorPorts(config)))}
        )


class FullDuplex(_Duplex):
    """A compressor and a decompressor that work at the same time."""

    def elaborate(self, platform: object) -> Module:
        m = Module()
        compressor, decompressor = Compressor(self.config), Decompressor(self.config)
        m.submodules.compressor = ResetInserter(self.compress.abort)(compressor)
        m.submodules.decompressor = ResetInserter(self.decompress.abort)(decompressor)
        join_ports(m, self.compress, compressor, without=_OF_HALF)
        join_ports(m, self.decompress, decompressor, without=_OF_HALF)
        return m


class HalfDuplex(_Duplex):
    """A compressor and a decompressor that take turns on one set of transforms and one alignment buffer (JPEG-ACT).

    Jobs of one direction follow each other as in full duplex. When a job of the other direction waits, no more jobs of this
    direction are begun; once those in progress have ended, the directions change.
    """

    def elaborate(self, platform: object) -> Module:
        m = Module()
        compression, decompression = CompressionPath(self.config), DecompressionPath(self.config)
        m.submodules.compression = ResetInserter(self.compress.abort)(compression)
        m.submodules.decompression = ResetInserter(self.decompress.abort)(decompression)

        # The current direction yields when the other one waits, but not before it has begun a job of its own.
        decompressing = Signal()
        fresh = Signal(init=1)
        m.d.comb += [self.compress.held.eq(decompressing), self.decompress.held.eq(~decompressing)]
        turns = (
            (compression, self.compress, self.decompress, ~decompressing),
            (decompression, self.decompress, self.compress, decompressing),
        )
        for path, port, other, own_turn in turns:
            may_begin = own_turn & (fresh | ~other.job.valid)
            m.d.comb += [
                path.job.payload.eq(port.job.payload),
                path.job.valid.eq(port.job.valid & may_begin),
                port.job.ready.eq(path.job.ready & may_begin),
            ]
            with m.If(path.job.valid & path.job.ready):
                m.d.sync += fresh.eq(0)
            with m.If(own_turn & path.idle & other.job.valid & ~(fresh & port.job.valid)):
                m.d.sync += [decompressing.eq(~decompressing), fresh.eq(1)]
            join_ports(m, port, path, without=("job", *_OF_HALF))

        restart = ResetInserter(Mux(decompressing, self.decompress.abort, self.compress.abort))
        if self.config.has_tiles:
            alignment = AlignmentBuffer(self.config, Direction.BOTH)
            m.submodules.alignment = restart(alignment)
            m.d.comb += alignment.to_rows.eq(decompressing)
            connect(m, compression.to_alignment, alignment.i)
            connect(m, decompression.to_alignment, alignment.blocks)
            spread(m, decompressing, alignment.o, (compression.from_alignment, decompression.from_alignment))
        if self.config.has_dct:
            for lane in range(self.config.cdus):
                dct = TwoWayDct(self.config)
                m.submodules[f"dct{lane}"] = restart(dct)
                m.d.comb += dct.inverse.eq(decompressing)
                share(m, decompressing, (compression.to_transform[lane], decompression.to_transform[lane]), dct.i)
                # Breaks the path of ready, which would lead from one direction's coder through the transform to the other's.
                queue = register_slice(dct.o.payload.shape())
                m.submodules[f"transformed{lane}"] = restart(queue)
                connect(m, dct.o, queue.i)
                spread(m, decompressing, queue.o, (compression.from_transform[lane], decompression.from_transform[lane]))
        return m


def both_directions(config: CduConfig) -> FullDuplex | HalfDuplex:
    """Return both directions as ``config.duplex`` asks for."""
    return HalfDuplex(config) if config.duplex == "half" else FullDuplex(config)


def share(m: Module, second: Signal, sources: tuple[stream.Interface, stream.Interface], sink: stream.Interface) -> None:
    """Connect one of two streams to ``sink``: the second when ``second`` is high."""
    with m.If(second):
        join(m, sources[1], sink)
    with m.Else():
        join(m, sources[0], sink)


def spread(m: Module, second: Signal, source: stream.Interface, sinks: tuple[stream.Interface, stream.Interface]) -> None:
    """Connect ``source`` to one of two streams: the second when ``second`` is high.

    The payload goes to both sinks, so that it does not depend on ``second``.
    """
    m.d.comb += source.ready.eq(Mux(second, sinks[1].ready, sinks[0].ready))
    for sink, chosen in ((sinks[0], ~second), (sinks[1], second)):
        m.d.comb += [sink.valid.eq(source.valid & chosen), *assigned(sink.payload, source.payload)]
