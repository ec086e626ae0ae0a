"""Splitter, which finds the blocks in a payload and deals them out to N CDUs (JPEG-ACT, "splitter")."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from amaranth.hdl import Const, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped
from cdu_spec.config import CduConfig
from cdu_spec.geometry import BLOCK_SIDE, BLOCK_VALUES
from cdu_spec.modes import Mode

from cdu.lanes.block_length import BlockLength
from cdu.lanes.byte_window import ByteWindow
from cdu.lanes.slice_dealer import SliceDealer
from cdu.words import Job, JobEvents, PackedWord, Slice

#: Fields that all slices of a block have in common.
_Block = data.StructLayout({"rows": range(BLOCK_SIDE + 1), "last": 1, "heads": 1})


@dataclass(frozen=True)
class _Cut:
    """Action on the bytes at the front of the window, done when ``enough`` of them are there."""

    enough: Value  #: the bytes are in the window
    gives: Value  #: a slice is given
    bits: Value  #: bits of the slice, from its first byte on
    count: Value  #: number of bytes of the slice
    ends: Value  #: the slice is the last one of its block
    amount: Value  #: bytes that leave the window
    rest: Value  #: bytes of the block in or behind the window afterwards
    done: Value  #: the block has left the window


class Splitter(wiring.Component):
    """Cut a payload into blocks, and blocks into slices for N lanes in turn.

    Bytes wait in a window that begins with a block. With N above 4 a block's length is found and its first slice removed in
    one cycle. With N up to 4 a block has more than one cycle, and results of a cycle are used in the next one: in the first
    cycle the length is found and the first slice is given, in each later one a slice is given and the one before removed, in
    the last one both are removed. Jobs of mode mx are cut into the rows that are decoded in a cycle, which are a block here:
    it fits a slice, and its length does not depend on its bytes, so that it leaves in its first cycle.

    Parameters
    ----------
    config
        N, S, M, ``modes`` and ``mx_rows``.

    Ports
    -----
    job
        Stream of :class:`~cdu.words.Job`: ``mode``, ``bank``, ``beats`` and ``how`` are used. One is taken in the cycle
        in which the last bytes of the one before are used up.
    i
        Stream of :class:`~cdu.words.PackedWord` of any count. The first word of a job is the one after a ``last``. Words may
        come before their job.
    o
        N streams of :class:`~cdu.words.Slice`.
    mx
        Stream of :class:`~cdu.words.Slice`: the jobs of mode mx, past the lanes; ``heads`` where a slice begins with a scale
        (only with that mode).
    events
        ``early_last``: zeros are handed out as the payload has ended. ``late_last``: bytes behind the last block are thrown
        away, up to ``last``. At most once per job each.
    idle
        No job is in progress.

    Latency: 2 cycles from a word that completes a slice, with N up to 4 one more for a slice that is a whole block. A block
    takes as many cycles as it has slices, with N up to 4 at least two; jobs follow each other without a pause if their
    payloads have the right length.
    """

    job: stream.Interface
    i: stream.Interface
    o: list[stream.Interface]
    mx: stream.Interface
    events: Any
    idle: Signal

    def __init__(self, config: CduConfig) -> None:
        self.config = config
        self.size = config.slice_bytes
        #: Whether a block has time for a cycle in which its length is found.
        self.looks_first = BLOCK_SIDE // config.cdus > 1
        self.reach = (2 if self.looks_first else 1) * self.size
        super().__init__(
            {
                "job": In(stream.Signature(Job())),
                "i": In(stream.Signature(PackedWord(config))),
                "o": Out(stream.Signature(Slice(config))).array(config.cdus),
                **({"mx": Out(stream.Signature(Slice(config)))} if config.has_mx else {}),
                "events": Out(JobEvents()),
                "idle": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.window = window = ByteWindow(self.config.packed_bytes, self.reach)
        m.submodules.block_length = head = BlockLength(self.config)
        m.submodules.dealer = dealer = SliceDealer(self.config)
        connect(m, flipped(self.i), window.i)
        for lane, sink in zip(dealer.o, self.o, strict=True):
            connect(m, lane, flipped(sink))
        if self.config.has_mx:
            connect(m, dealer.mx, flipped(self.mx))

        # The job, and the number of its blocks that have not begun
        busy = Signal()
        drains = Signal()
        job: Any = Signal(Job())
        m.d.comb += [self.idle.eq(~busy), self.job.ready.eq(~busy | window.finishes)]
        only = Signal()
        rows = Signal(range(BLOCK_SIDE + 1))
        m.d.comb += [only.eq(job["beats"] <= BLOCK_SIDE), rows.eq(Mux(only, job["beats"][: len(rows)], BLOCK_SIDE))]
        in_mx = job["mode"] == Mode.MX if self.config.has_mx else None
        if in_mx is not None and self.config.mx_rows < BLOCK_SIDE:
            with m.If(in_mx):
                m.d.comb += [only.eq(job["beats"] <= self.config.mx_rows), rows.eq(self.config.mx_rows)]
        m.d.comb += [
            head.mode.eq(job["mode"]),
            head.how.eq(job["how"]),
            head.mask.eq(window.data[:BLOCK_VALUES]),
            head.rows.eq(rows),
            head.job_begins.eq(self.job.ready & self.job.valid),
        ]

        # The block: one cut per cycle
        first = Signal(init=1)  # the window begins with a block of which nothing was cut
        rest = Signal.like(head.length)  # bytes of the block in or behind the window
        begun: Any = Signal(_Block)  # the block of which something was cut
        block: Any = Signal(_Block)
        with m.If(first):
            m.d.comb += [block.rows.eq(rows), block.last.eq(only), block.heads.eq(head.heads)]
        with m.Else():
            m.d.comb += block.eq(begun)
        cut = self._cut(window, first, head.length, rest, in_mx)
        works = Signal()
        go = Signal()
        m.d.comb += [
            works.eq(busy & ~drains & cut.enough),
            go.eq(works & (dealer.i.ready | ~cut.gives)),
            head.block_begins.eq(go & first),
        ]
        with m.If(go):
            m.d.sync += [first.eq(cut.done), rest.eq(cut.rest), begun.eq(block)]
        with m.If(go & first):
            m.d.sync += job["beats"].eq(job["beats"] - rows)
        offered = dealer.i.payload
        m.d.comb += [
            dealer.i.valid.eq(works & cut.gives),
            offered["data"].eq(cut.bits),
            offered["count"].eq(cut.count),
            offered["ends"].eq(cut.ends),
            offered["rows"].eq(block.rows),
            offered["tag"]["mode"].eq(job["mode"]),
            offered["tag"]["bank"].eq(job["bank"]),
            offered["tag"]["last"].eq(block.last),
            offered["tag"]["how"].eq(job["how"]),
            offered["tag"]["heads"].eq(block.heads),
        ]
        if self.looks_first:
            # The last slice of a block is not shown before the block's second cycle: if one that fits into a single slice came
            # earlier, the first longer one after it would come late, and with N = 4 there is no cycle to make up for that.
            m.d.comb += dealer.waits.eq(first & cut.ends if in_mx is None else first & cut.ends & ~in_mx)

        # Bytes that leave the window, and the end of the job
        closes = Signal()  # its last block leaves the window
        exactly = Signal()  # it does, and nothing is behind it
        m.d.comb += [
            window.amount.eq(Mux(drains, self.reach, Mux(go, cut.amount, 0))),
            window.drains.eq(drains),
            closes.eq(go & cut.done & block.last),
            exactly.eq(window.ended & (window.remaining == 0)),
            window.finishes.eq((closes | drains) & exactly),
        ]
        with m.If(window.finishes | ~busy):
            m.d.sync += [busy.eq(self.job.valid), drains.eq(0)]
        with m.Elif(closes):
            m.d.sync += drains.eq(1)
        with m.If(head.job_begins):
            m.d.sync += [job[name].eq(self.job.payload[name]) for name in ("mode", "bank", "beats")]
            if self.config.has_affine or self.config.has_gmc or self.config.has_mx:
                m.d.sync += job["how"].eq(self.job.payload["how"])

        # Events, once per job
        lacks = go & window.short
        exceeds = (drains & ((window.level != 0) | window.wasted)) | (closes & ~exactly & (window.remaining != 0))
        for name, happens in (("early_last", lacks), ("late_last", exceeds)):
            told = Signal(name=f"told_{name}")
            m.d.comb += self.events[name].eq(happens & ~told)
            m.d.sync += told.eq((told | happens) & ~window.finishes)
        return m

    def _cut(self, window: ByteWindow, first: Value, length: Value, rest: Value, in_mx: Value | None) -> _Cut:
        size = self.size
        if not self.looks_first:
            present = Mux(first, length, rest)
            done: Value = present <= size
            return _Cut(
                enough=window.ended | (window.level >= size),
                gives=Const(1),
                bits=window.data[: 8 * size],
                count=Mux(done, present, size),
                ends=done,
                amount=Mux(done, present, size),
                rest=present - size,
                done=done,
            )
        done = ~first & (rest <= 2 * size)
        at_once: Value = Const(0)
        if in_mx is not None:
            done, at_once = done | in_mx, Mux(in_mx, length, 0)
        given = Mux(first, length, rest - size)
        ends = given <= size
        return _Cut(
            enough=window.ended | (window.level >= 2 * size) | (first & (window.level >= size)),
            gives=first | (rest > size),
            bits=Mux(first, window.data[: 8 * size], window.data[8 * size : 16 * size]),
            count=Mux(ends, given, size),
            ends=ends,
            amount=Mux(first, at_once, Mux(done, rest, size)),
            rest=Mux(first, length, rest - size),
            done=done,
        )
