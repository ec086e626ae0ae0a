"""Packed words to blocks of quantised values: splitter, N lanes, gatherer."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped
from cdu_spec.config import CduConfig

from cdu.lanes.decompress_lane import DecompressLane
from cdu.lanes.gatherer import Gatherer
from cdu.lanes.splitter import Splitter
from cdu.parts.register_slice import sliced
from cdu.parts.streams import Beat, lanes
from cdu.words import BlockWord, Job, JobEvents, PackedWord, ShiftBanks, Slice


class BlockUnpacker(wiring.Component):
    """The decompressing side of N CDUs before the alignment buffer, without their transforms.

    Parameters
    ----------
    config
        ``cdus`` (N), ``port_beats`` (P), ``packed_bytes`` (M), ``slice_bytes``, ``modes``.

    Ports
    -----
    job, i, events
        As in :class:`~cdu.lanes.splitter.Splitter`.
    o
        Stream of :class:`~cdu.words.BlockWord`, with ranges where a mode that has them is built in: the same blocks in the same
        order for every N and M.
    mx
        As in :class:`~cdu.lanes.splitter.Splitter`.
    to_transform, from_transform
        N streams each, to and from an :class:`~cdu.transform.idct.Idct` (only with jpeg-act).
    shifts
        The banks of shift tables, each constant while blocks that use it are on their way (used with jpeg-act).
    idle
        No payload is being read: the last word of every job that was taken has come. Blocks may still be on their way.

    Rate: N rows per cycle (P, if that is less) for any content, a job after the other.
    """

    job: stream.Interface
    i: stream.Interface
    o: stream.Interface
    mx: stream.Interface
    to_transform: list[stream.Interface]
    from_transform: list[stream.Interface]
    shifts: Any
    events: Any
    idle: Signal

    def __init__(self, config: CduConfig) -> None:
        self.config = config
        members = {
            "job": In(stream.Signature(Job())),
            "i": In(stream.Signature(PackedWord(config))),
            "o": Out(stream.Signature(BlockWord(config, ranged=config.has_ranges))),
            **({"mx": Out(stream.Signature(Slice(config)))} if config.has_mx else {}),
            "shifts": In(ShiftBanks),
            "events": Out(JobEvents()),
            "idle": Out(1),
        }
        if config.has_dct:
            members |= {
                "to_transform": Out(stream.Signature(lanes(config.coefficient_bits))).array(config.cdus),
                "from_transform": In(stream.Signature(Beat)).array(config.cdus),
            }
        super().__init__(members)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.splitter = splitter = Splitter(self.config)
        m.submodules.gatherer = gatherer = Gatherer(self.config)
        connect(m, flipped(self.job), splitter.job)
        connect(m, flipped(self.i), splitter.i)
        connect(m, gatherer.o, flipped(self.o))
        if self.config.has_mx:
            connect(m, splitter.mx, flipped(self.mx))
        m.d.comb += [self.events.eq(splitter.events), self.idle.eq(splitter.idle)]
        for number in range(self.config.cdus):
            m.submodules[f"lane{number}"] = lane = DecompressLane(self.config)
            connect(m, sliced(m, self.config, f"entry{number}", splitter.o[number]), lane.i)
            connect(m, sliced(m, self.config, f"exit{number}", lane.o), gatherer.i[number])
            if self.config.has_dct:
                connect(m, lane.to_transform, flipped(self.to_transform[number]))
                connect(m, flipped(self.from_transform[number]), lane.from_transform)
                m.d.comb += lane.shifts.eq(self.shifts)
        return m
