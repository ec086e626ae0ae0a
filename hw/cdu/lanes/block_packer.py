"""Blocks of quantised values to packed words: distributor, N lanes, collector."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped
from cdu_spec.affine import SEED_BITS
from cdu_spec.config import CduConfig

from cdu.lanes.collector import Collector
from cdu.lanes.compress_lane import CompressLane
from cdu.lanes.distributor import Distributor
from cdu.parts.register_slice import sliced
from cdu.parts.streams import Beat, lanes
from cdu.words import PackedWord, ShiftBanks, Slice, packer_word


class BlockPacker(wiring.Component):
    """The compressing side of N CDUs behind the alignment buffer, without their transforms.

    Parameters
    ----------
    config
        ``cdus`` (N), ``port_beats`` (P), ``packed_bytes`` (M), ``slice_bytes``, ``modes``, ``rounding``.

    Ports
    -----
    i
        Stream of :class:`~cdu.words.BlockWord` (:func:`~cdu.words.packer_word`).
    seeds
        Stream of seeds, one per job, see :class:`~cdu.lanes.distributor.Distributor` (only with modes that round at random).
    mx, turns
        See :class:`~cdu.lanes.collector.Collector` (only with mode mx).
    o
        Stream of :class:`~cdu.words.PackedWord`, the same for every N and P.
    to_transform, from_transform
        N streams each, to and from a :class:`~cdu.transform.dct.Dct` (only with jpeg-act).
    shifts
        The banks of shift tables, each constant while blocks that use it are on their way (used with jpeg-act).

    Rate: N rows per cycle (P, if that is less) for any content, a job after the other.
    """

    i: stream.Interface
    seeds: stream.Interface
    mx: stream.Interface
    turns: stream.Interface
    o: stream.Interface
    to_transform: list[stream.Interface]
    from_transform: list[stream.Interface]
    shifts: Any

    def __init__(self, config: CduConfig) -> None:
        self.config = config
        members = {
            "i": In(stream.Signature(packer_word(config))),
            **({"seeds": In(stream.Signature(SEED_BITS))} if config.draws else {}),
            **({"mx": In(stream.Signature(Slice(config))), "turns": In(stream.Signature(1))} if config.has_mx else {}),
            "o": Out(stream.Signature(PackedWord(config))),
            "shifts": In(ShiftBanks),
        }
        if config.has_dct:
            members |= {
                "to_transform": Out(stream.Signature(Beat)).array(config.cdus),
                "from_transform": In(stream.Signature(lanes(config.coefficient_bits))).array(config.cdus),
            }
        super().__init__(members)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.distributor = distributor = Distributor(self.config)
        m.submodules.collector = collector = Collector(self.config)
        connect(m, flipped(self.i), distributor.i)
        if self.config.draws:
            connect(m, flipped(self.seeds), distributor.seeds)
        connect(m, collector.o, flipped(self.o))
        if self.config.has_mx:
            connect(m, flipped(self.mx), collector.mx)
            connect(m, flipped(self.turns), collector.turns)
        for number in range(self.config.cdus):
            m.submodules[f"lane{number}"] = lane = CompressLane(self.config)
            connect(m, sliced(m, self.config, f"entry{number}", distributor.o[number]), lane.i)
            connect(m, sliced(m, self.config, f"exit{number}", lane.o), collector.i[number])
            if self.config.has_dct:
                connect(m, lane.to_transform, flipped(self.to_transform[number]))
                connect(m, flipped(self.from_transform[number]), lane.from_transform)
                m.d.comb += lane.shifts.eq(self.shifts)
        return m
