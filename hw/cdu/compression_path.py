"""Values to payload, all but the alignment buffer and the transforms: these may be shared with the other direction."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped
from cdu_spec.bitstream import Mode
from cdu_spec.config import CduConfig

from cdu.block_packer import BlockPacker
from cdu.bypass import BypassPacker
from cdu.direction_ports import DirectionPorts
from cdu.job_count import JobCount
from cdu.join import join_in_order
from cdu.stream_fifo import StreamFifo
from cdu.streams import Beat, lanes
from cdu.value_front import ValueFront
from cdu.words import BlockWord, PackedWord, TileWord, ValueWord


class CompressorPorts(DirectionPorts):
    """Ports of a :class:`cdu.compressor.Compressor`."""

    def __init__(self, config: CduConfig) -> None:
        super().__init__(ValueWord(config), PackedWord(config))


class CompressionPath(wiring.Component):
    """What stands before and behind the alignment buffer and the N transforms when compressing.

    Parameters
    ----------
    config
        All parameters are used.

    Ports
    -----
    job, scales, i, o, shifts, events, idle
        As in :class:`cdu.compressor.Compressor`.
    to_alignment, from_alignment
        Streams to and from the alignment buffer (only with mode jpeg-act).
    to_transform, from_transform
        N streams each, to and from the forward DCTs: rows of 8 samples, columns of 8 coefficients (only with jpeg-act).
    """

    job: stream.Interface
    scales: stream.Interface
    i: stream.Interface
    o: stream.Interface
    shifts: Any
    events: Any
    idle: Signal
    to_alignment: stream.Interface
    from_alignment: stream.Interface
    to_transform: list[stream.Interface]
    from_transform: list[stream.Interface]

    def __init__(self, config: CduConfig) -> None:
        self.config = config
        members = dict(CompressorPorts(config).members)
        if Mode.JPEG_ACT in config.built_modes:
            members |= {
                "to_alignment": Out(stream.Signature(TileWord(config))),
                "from_alignment": In(stream.Signature(BlockWord(config))),
                "to_transform": Out(stream.Signature(Beat)).array(config.cdus),
                "from_transform": In(stream.Signature(lanes(config.coefficient_bits))).array(config.cdus),
            }
        super().__init__(members)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.front = front = ValueFront(self.config)
        m.submodules.packer = packer = BlockPacker(self.config)
        m.submodules.jobs = jobs = JobCount()
        connect(m, flipped(self.scales), front.scales)
        connect(m, flipped(self.i), front.i)
        connect(m, flipped(self.job), jobs.i)
        m.d.comb += [self.events.eq(front.events), self.idle.eq(jobs.idle)]
        m.d.comb += jobs.done.eq(self.o.valid & self.o.ready & self.o.payload["last"])
        if Mode.JPEG_ACT in self.config.built_modes:
            m.d.comb += packer.shifts.eq(self.shifts)
            connect(m, front.to_alignment, flipped(self.to_alignment))
            connect(m, flipped(self.from_alignment), packer.i)
            for lane in range(self.config.cdus):
                connect(m, packer.to_transform[lane], flipped(self.to_transform[lane]))
                connect(m, flipped(self.from_transform[lane]), packer.from_transform[lane])
        else:
            connect(m, front.to_alignment, packer.i)
        if Mode.BYPASS not in self.config.built_modes:
            connect(m, jobs.o, front.job)
            connect(m, packer.o, flipped(self.o))
            return m

        # Both ways to the output take turns in the order of the jobs.
        m.submodules.bypass = bypass = BypassPacker(self.config)
        m.submodules.order = order = StreamFifo(1, jobs.depth)
        connect(m, front.raw, bypass.i)
        m.d.comb += [
            front.job.payload.eq(jobs.o.payload),
            front.job.valid.eq(jobs.o.valid & order.i.ready),
            jobs.o.ready.eq(front.job.ready & order.i.ready),
            order.i.valid.eq(jobs.o.valid & front.job.ready),
            order.i.payload.eq(jobs.o.payload.mode == Mode.BYPASS),
            order.o.ready.eq(jobs.done),
        ]
        join_in_order(m, order.o, (packer.o, bypass.o), self.o)
        return m
