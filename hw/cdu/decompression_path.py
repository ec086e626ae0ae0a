"""Payload to values, all but the alignment buffer and the transforms: these may be shared with the other direction."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Module, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped
from cdu_spec.bitstream import Mode
from cdu_spec.config import CduConfig

from cdu.block_unpacker import BlockUnpacker
from cdu.job_count import JobCount
from cdu.shift_quantizer import ShiftTable
from cdu.stream_fifo import StreamFifo
from cdu.streams import Beat, lanes
from cdu.value_back import ValueBack
from cdu.words import Job, JobEvents, PackedWord, Scale, TileWord, ValueWord

#: Jobs whose payload may be under way to the back end at the same time.
_JOBS_UNDER_WAY = 4


class DecompressionPath(wiring.Component):
    """What stands before and behind the N inverse transforms and the alignment buffer when decompressing.

    Parameters
    ----------
    config
        All parameters are used but ``scale_bits`` and ``rounding``.

    Ports
    -----
    job, scales, i, o, shifts, events, idle
        As in :class:`cdu.decompressor.Decompressor`.
    to_transform, from_transform
        N streams each, to and from the inverse DCTs: columns of 8 coefficients, rows of 8 samples (only with mode jpeg-act).
    to_alignment, from_alignment
        Streams to and from the alignment buffer (only with jpeg-act).
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
        members = {
            "job": In(stream.Signature(Job())),
            "scales": In(stream.Signature(Scale())),
            "i": In(stream.Signature(PackedWord(config))),
            "o": Out(stream.Signature(ValueWord(config))),
            "shifts": In(data.ArrayLayout(ShiftTable, 2)),
            "events": Out(JobEvents()),
            "idle": Out(1),
        }
        if Mode.JPEG_ACT in config.built_modes:
            members |= {
                "to_alignment": Out(stream.Signature(TileWord(config))),
                "from_alignment": In(stream.Signature(TileWord(config))),
                "to_transform": Out(stream.Signature(lanes(config.coefficient_bits))).array(config.cdus),
                "from_transform": In(stream.Signature(Beat)).array(config.cdus),
            }
        super().__init__(members)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        config = self.config
        m.submodules.jobs = jobs = JobCount()
        m.submodules.unpacker = unpacker = BlockUnpacker(config)
        m.submodules.back = back = ValueBack(config)
        m.submodules.unpacker_jobs = unpacker_jobs = StreamFifo(Job(), 2)
        m.submodules.back_jobs = back_jobs = StreamFifo(Job(), _JOBS_UNDER_WAY)
        connect(m, flipped(self.job), jobs.i)
        connect(m, unpacker_jobs.o, unpacker.job)
        connect(m, back_jobs.o, back.job)
        connect(m, flipped(self.scales), back.scales)
        events = unpacker.events.as_value() | back.events.as_value()
        m.d.comb += [unpacker.shifts.eq(self.shifts), self.idle.eq(jobs.idle)]
        m.d.comb += jobs.done.eq(self.o.valid & self.o.ready & self.o.payload["last"])
        return m
