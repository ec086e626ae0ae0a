"""Path from payload to values without the alignment buffer and the transforms, which the other direction may share."""

from __future__ import annotations

from functools import reduce
from operator import or_

from amaranth.hdl import Cat, Const, Module, Mux, Value
from amaranth.lib import stream
from amaranth.lib.wiring import connect, flipped
from cdu_spec.config import CduConfig
from cdu_spec.modes import Mode
from cdu_spec.register_types import Channel

from cdu.lanes.block_unpacker import BlockUnpacker
from cdu.parts.head_fifo import HeadFifo
from cdu.parts.join import hand_out, join_in_order, split_in_order
from cdu.parts.stream_fifo import StreamFifo
from cdu.parts.streams import Beat, lanes
from cdu.unit.bypass import BypassUnpacker
from cdu.unit.direction import DirectionPath, DirectionPorts, ends_job
from cdu.unit.job_count import JobCount
from cdu.unit.mx_blocks import MxUnpacker
from cdu.values.value_back import ValueBack
from cdu.words import Job, PackedWord, TileWord, ValueWord, join_jobs

#: Number of jobs whose payload may be arriving, and of jobs whose blocks may be on their way to the back end.
_JOBS_UNDER_WAY = 4


class DecompressorPorts(DirectionPorts):
    """Ports of a :class:`cdu.unit.decompressor.Decompressor`."""

    def __init__(self, config: CduConfig) -> None:
        super().__init__(config, Channel.DECOMPRESS, PackedWord(config), ValueWord(config))


class DecompressionPath(DirectionPath):
    """Decompression path around the N inverse transforms and the alignment buffer.

    Parameters
    ----------
    config
        All parameters are used but ``scale_bits`` and ``rounding``.

    Ports
    -----
    job, scales, i, o, shifts, events, idle
        Ports of :class:`cdu.unit.decompressor.Decompressor`.
    to_transform, from_transform
        N streams each, to and from the inverse DCTs: columns of 8 coefficients, rows of 8 samples (only with mode jpeg-act).
    to_alignment, from_alignment
        Streams to and from the alignment buffer (only with modes in tiles).
    """

    def __init__(self, config: CduConfig) -> None:
        super().__init__(
            config,
            DecompressorPorts(config),
            alignment=(TileWord(config), TileWord(config)),
            transform=(lanes(config.coefficient_bits), Beat),
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        config = self.config
        m.submodules.jobs = jobs = JobCount()
        m.submodules.unpacker = unpacker = BlockUnpacker(config)
        m.submodules.back = back = ValueBack(config)
        m.submodules.payload_jobs = payload_jobs = StreamFifo(Job(), 2)
        m.submodules.back_jobs = back_jobs = HeadFifo(Job(), _JOBS_UNDER_WAY)
        join_jobs(m, config, self.job, jobs.i)
        connect(m, back_jobs.o, back.job)
        connect(m, flipped(self.scales), back.scales)
        connect(m, unpacker.o, back.i)
        m.d.comb += [
            self.idle.eq(jobs.idle),
            jobs.done.eq(self.o.valid & self.o.ready & self.o.payload["last"]),
            self.events.eq(unpacker.events),
            self.events.scale_missing.eq(back.scale_missing),
            self.events.scale_surplus.eq(back.scale_surplus),
            self.events.bad_head.eq(back.bad_head),
        ]
        if config.ledger_jobs:
            m.d.comb += [
                self.found.splitter.ends.eq(unpacker.job.ready & ~unpacker.idle),
                self.found.splitter.early_last.eq(unpacker.events.early_last),
                self.found.splitter.late_last.eq(unpacker.events.late_last),
            ]
            if config.has_ranges:
                m.d.comb += [self.found.heads.ends.eq(ends_job(back.i)), self.found.heads.bad_head.eq(back.bad_head)]
        if config.has_tiles:
            connect(m, back.to_alignment, flipped(self.to_alignment))
            connect(m, flipped(self.from_alignment), back.from_alignment)
        if config.has_dct:
            m.d.comb += unpacker.shifts.eq(self.shifts)
            for lane in range(config.cdus):
                connect(m, unpacker.to_transform[lane], flipped(self.to_transform[lane]))
                connect(m, flipped(self.from_transform[lane]), unpacker.from_transform[lane])
        self._turns(m, jobs, unpacker, back, payload_jobs, back_jobs)
        return m

    def _turns(
        self,
        m: Module,
        jobs: JobCount,
        unpacker: BlockUnpacker,
        back: ValueBack,
        payload_jobs: StreamFifo,
        back_jobs: HeadFifo,
    ) -> None:
        """Hand every job to the paths that it takes, past the back end or through it; input and output follow their order."""
        config = self.config
        mode = jobs.o.payload.mode
        others: list[tuple[Value, stream.Interface]] = []
        if config.has_mx:
            m.submodules.mx = mx = MxUnpacker(config)
            connect(m, unpacker.mx, mx.i)
            others.append((mode == Mode.MX, mx.o))
        if config.has_bypass:
            m.submodules.bypass = bypass = BypassUnpacker(config)
            m.submodules.arrivals = arrivals = StreamFifo(1, _JOBS_UNDER_WAY)
            bypassed = mode == Mode.BYPASS
            others.append((bypassed, bypass.o))
        arrives = [(arrivals.i, Const(1))] if config.has_bypass else []
        enters, leaves = [], []
        if others:
            m.submodules.departures = departures = HeadFifo(len(others), jobs.depth)
            enters, leaves = [departures.i.payload.eq(Cat(taken for taken, _ in others))], [departures.o.ready.eq(jobs.done)]
            past_back = reduce(or_, (taken for taken, _ in others))
            hand_out(m, jobs.o, [(payload_jobs.i, Const(1)), (back_jobs.i, ~past_back), *arrives, (departures.i, Const(1))])
        else:
            hand_out(m, jobs.o, [(payload_jobs.i, Const(1)), (back_jobs.i, Const(1))])

        # The paths from the input, and those to the output, take turns in the order of the jobs.
        if config.has_bypass:
            next_job = payload_jobs.o
            bypasses = next_job.payload.mode == Mode.BYPASS
            m.d.comb += [
                unpacker.job.valid.eq(next_job.valid & ~bypasses),
                bypass.job.valid.eq(next_job.valid & bypasses),
                next_job.ready.eq(Mux(bypasses, bypass.job.ready, unpacker.job.ready)),
                *(taker.job.payload.eq(next_job.payload) for taker in (unpacker, bypass)),
                arrivals.i.payload.eq(bypassed),
                *enters,
                arrivals.o.ready.eq(self.i.valid & self.i.ready & self.i.payload["last"]),
                *leaves,
            ]
            split_in_order(m, arrivals.o, self.i, (unpacker.i, bypass.i))
        else:
            connect(m, payload_jobs.o, unpacker.job)
            connect(m, flipped(self.i), unpacker.i)
            m.d.comb += [*enters, *leaves]
        if others:
            join_in_order(m, departures.o, [back.o, *(source for _, source in others)], self.o)
        else:
            connect(m, back.o, flipped(self.o))
        if config.has_bypass:
            m.d.comb += [
                self.events.early_last.eq(unpacker.events.early_last | bypass.early_last),
                self.events.late_last.eq(unpacker.events.late_last | bypass.late_last),
            ]
            if config.ledger_jobs:
                m.d.comb += [
                    self.found.output.ends.eq(jobs.done),
                    self.found.output.early_last.eq(bypass.early_last),
                    self.found.output.late_last.eq(bypass.late_last),
                ]
