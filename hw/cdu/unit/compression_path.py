"""Path from values to payload without the alignment buffer and the transforms, which the other direction may share."""

from __future__ import annotations

from amaranth.hdl import Const, Module, Value
from amaranth.lib import stream
from amaranth.lib.wiring import connect, flipped
from cdu_spec.affine import SEED_BITS
from cdu_spec.config import CduConfig
from cdu_spec.modes import Mode
from cdu_spec.register_types import Channel

from cdu.alignment.range_finder import RangeFinder
from cdu.alignment.range_join import RangeJoin
from cdu.lanes.block_packer import BlockPacker
from cdu.parts.head_fifo import HeadFifo
from cdu.parts.join import hand_out, join_in_order
from cdu.parts.register_slice import sliced
from cdu.parts.stream_fifo import StreamFifo
from cdu.parts.streams import Beat, lanes
from cdu.unit.bypass import BypassPacker
from cdu.unit.direction import DirectionPath, DirectionPorts, ends_job, ends_packet
from cdu.unit.job_count import JobCount
from cdu.unit.mx_blocks import MxPacker
from cdu.values.value_front import ValueFront
from cdu.words import BlockWord, PackedWord, TileWord, ValueWord


class CompressorPorts(DirectionPorts):
    """Ports of a :class:`cdu.unit.compressor.Compressor`."""

    def __init__(self, config: CduConfig) -> None:
        super().__init__(config, Channel.COMPRESS, ValueWord(config), PackedWord(config))


class CompressionPath(DirectionPath):
    """Compression path around the alignment buffer and the N transforms.

    Parameters
    ----------
    config
        All parameters are used.

    Ports
    -----
    job, scales, i, o, shifts, events, idle
        Ports of :class:`cdu.unit.compressor.Compressor`.
    to_alignment, from_alignment
        Streams to and from the alignment buffer (only with modes in tiles), of ``config.value_bits``.
    to_transform, from_transform
        N streams each, to and from the forward DCTs: rows of 8 samples, columns of 8 coefficients (only with jpeg-act).
    """

    def __init__(self, config: CduConfig) -> None:
        super().__init__(
            config,
            CompressorPorts(config),
            alignment=(TileWord(config, config.value_bits), BlockWord(config, config.value_bits)),
            transform=(Beat, lanes(config.coefficient_bits)),
        )

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
        if self.config.ledger_jobs:
            m.d.comb += [
                self.found.front.ends.eq(ends_job(front.to_alignment)),
                self.found.front.nonfinite.eq(front.events.nonfinite),
            ]
        if self.config.has_dct:
            m.d.comb += packer.shifts.eq(self.shifts)
            for lane in range(self.config.cdus):
                connect(m, packer.to_transform[lane], flipped(self.to_transform[lane]))
                connect(m, flipped(self.from_transform[lane]), packer.from_transform[lane])
        if self.config.has_ranges:
            m.submodules.finder = finder = RangeFinder(self.config)
            m.submodules.join = join = RangeJoin(self.config)
            connect(m, front.to_alignment, finder.i)
            connect(m, finder.o, flipped(self.to_alignment))
            connect(m, finder.ranges, join.ranges)
            connect(m, flipped(self.from_alignment), join.i)
            connect(m, join.o, packer.i)
        elif self.config.has_tiles:
            connect(m, front.to_alignment, flipped(self.to_alignment))
            connect(m, flipped(self.from_alignment), packer.i)
        else:
            connect(m, front.to_alignment, packer.i)

        # The front end takes every job; its seed waits in a queue until the packer has had the job's last block.
        bypassed = jobs.o.payload.mode == Mode.BYPASS if self.config.has_bypass else Const(0, 1)
        takers: list[tuple[stream.Interface, Value]] = [(front.job, Const(1, 1))]
        if self.config.has_mx:
            in_mx = jobs.o.payload.mode == Mode.MX
            m.submodules.mx = mx = MxPacker(self.config)
            m.submodules.turns = turns = StreamFifo(1, jobs.depth)
            connect(m, front.mx, mx.i)
            connect(m, sliced(m, self.config, "mx_exit", mx.o), packer.mx)
            connect(m, turns.o, packer.turns)
            m.d.comb += [turns.i.payload.eq(in_mx), self.events.nonfinite.eq(front.events.nonfinite | mx.nonfinite)]
            takers.append((turns.i, ~bypassed))
            if self.config.ledger_jobs:
                m.d.comb += [self.found.mx.ends.eq(ends_packet(front.mx)), self.found.mx.nonfinite.eq(mx.nonfinite)]
        if self.config.draws:
            m.submodules.seeds = seeds = StreamFifo(SEED_BITS, jobs.depth)
            m.d.comb += seeds.i.payload.eq(jobs.o.payload.seed)
            connect(m, seeds.o, packer.seeds)
            takers.append((seeds.i, ~(bypassed | in_mx) if self.config.has_mx else ~bypassed))
        if not self.config.has_bypass:
            hand_out(m, jobs.o, takers)
            connect(m, packer.o, flipped(self.o))
            return m

        # The paths to the output take turns in the order of the jobs.
        m.submodules.bypass = bypass = BypassPacker(self.config)
        m.submodules.order = order = HeadFifo(1, jobs.depth)
        connect(m, front.raw, bypass.i)
        hand_out(m, jobs.o, [*takers, (order.i, Const(1, 1))])
        m.d.comb += [order.i.payload.eq(bypassed), order.o.ready.eq(jobs.done)]
        join_in_order(m, order.o, (packer.o, bypass.o), self.o)
        return m
