"""Splitter, which finds the blocks in a payload and deals them out to N CDUs (JPEG-ACT, "splitter")."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Const, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped
from cdu_spec.config import CduConfig
from cdu_spec.geometry import BLOCK_SIDE
from cdu_spec.modes import MASK_BYTES, Mode

from cdu.lanes.block_length import BlockLength
from cdu.lanes.byte_window import ByteWindow
from cdu.lanes.slice_dealer import SliceDealer
from cdu.words import Job, JobEvents, PackedWord, Slice

#: Fields that all slices of a block have in common.
_Block = data.StructLayout({"rows": range(BLOCK_SIDE + 1), "last": 1, "heads": 1})


class Splitter(wiring.Component):
    """Cut a payload into blocks, and blocks into slices for N lanes in turn.

    Bytes wait in a window that begins with what is left of a block. In each cycle a slice is given and leaves the window;
    with the last one of a block the length of the next block is found, so that none is found and used in one cycle. Jobs of
    mode mx are cut into the rows that are decoded in a cycle, which are a block here: it fits a slice, and its length does not
    depend on its bytes.

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

    Latency: 2 cycles from a word that completes a slice, 3 if its block begins in it or is the first of its job; with N up to 4
    one more for a slice that is a whole block. A block takes as many cycles as it has slices; jobs follow each other without a
    pause if their payloads have the right length and the first word of a job has at least 8 bytes, or all. With S = M a job may
    take one cycle more.
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
        #: Bytes in the window with which a slice is given and the length of the block behind it is found.
        self.reach = self.size + MASK_BYTES
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
        closes = Signal()  # its last block leaves the window
        exactly = Signal()  # it does, and nothing is behind it
        m.d.comb += [self.idle.eq(~busy), self.job.ready.eq(~busy | window.finishes)]

        # The block at the front of the window, of which slices leave
        begun = Signal()  # it is known
        whole = Signal()  # nothing of it has left the window
        rest = Signal.like(head.length)  # its bytes in or behind the window
        block: Any = Signal(_Block)
        ends = Signal()
        count = Signal(range(self.size + 1))
        enough = Signal()
        go = Signal()
        m.d.comb += [
            ends.eq(rest <= self.size),
            count.eq(Mux(ends, rest, self.size)),
            enough.eq(window.ended | (window.level >= self.size)),
            go.eq(begun & enough & dealer.i.ready),
        ]

        # The block behind it, of this job or the first one of the next
        first = Signal()
        of: Any = Signal(Job())
        only = Signal()
        rows = Signal(range(BLOCK_SIDE + 1))
        m.d.comb += [
            first.eq(begun & block.last),
            of.eq(Mux(first, self.job.payload.as_value(), job.as_value())),
            only.eq(of["beats"] <= BLOCK_SIDE),
            rows.eq(Mux(only, of["beats"][: len(rows)], BLOCK_SIDE)),
        ]
        if self.config.has_mx and self.config.mx_rows < BLOCK_SIDE:
            with m.If(of["mode"] == Mode.MX):
                m.d.comb += [only.eq(of["beats"] <= self.config.mx_rows), rows.eq(self.config.mx_rows)]
        word = self.i.payload
        after = Signal(range(self.size + 1))  # bytes of the window before it
        seen = Signal()  # the bytes that tell its length are there
        begins = Signal()
        m.d.comb += [
            after.eq(Mux(begun, count, 0)),
            head.mode.eq(of["mode"]),
            head.how.eq(of["how"]),
            head.rows.eq(rows),
            head.bytes.eq(window.data),
            head.place.eq(after),
            head.first.eq(first),
            head.fresh.eq(word["data"]),
            head.job_begins.eq(self.job.ready & self.job.valid),
            head.block_begins.eq(begins),
        ]
        word_tells = self.i.valid & (word["last"] | (word["count"] >= MASK_BYTES))
        window_tells = window.ended | (window.level >= after + MASK_BYTES)
        m.d.comb += [
            seen.eq(~head.looks | Mux(first, word_tells, window_tells)),
            begins.eq(Mux(first, closes & exactly & self.job.valid, busy & ~drains & (~begun | (go & ends))) & seen),
        ]
        with m.If(begins):
            m.d.sync += [
                begun.eq(1),
                whole.eq(1),
                rest.eq(head.length),
                block.rows.eq(rows),
                block.last.eq(only),
                block.heads.eq(head.heads),
            ]
        with m.Elif(go):
            m.d.sync += [begun.eq(~ends), whole.eq(0), rest.eq(rest - self.size)]
        offered = dealer.i.payload
        m.d.comb += [
            dealer.i.valid.eq(begun & enough),
            offered["data"].eq(window.data[: 8 * self.size]),
            offered["count"].eq(count),
            offered["ends"].eq(ends),
            offered["rows"].eq(block.rows),
            offered["tag"]["mode"].eq(job["mode"]),
            offered["tag"]["bank"].eq(job["bank"]),
            offered["tag"]["last"].eq(block.last),
            offered["tag"]["how"].eq(job["how"]),
            offered["tag"]["heads"].eq(block.heads),
        ]
        if BLOCK_SIDE // self.config.cdus > 1:
            # A slice that is a whole block is not shown before a second cycle: if it were earlier, the first longer block
            # after it would come late, and with N = 4 there is no cycle to make up for that.
            in_mx = job["mode"] == Mode.MX if self.config.has_mx else Const(0)
            m.d.comb += dealer.waits.eq(whole & ends & ~in_mx)

        # Bytes that leave the window, and the end of the job
        m.d.comb += [
            window.amount.eq(Mux(drains, self.reach, Mux(go, count, 0))),
            window.drains.eq(drains),
            closes.eq(go & ends & block.last),
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
        with m.If(begins):
            m.d.sync += job["beats"].eq(of["beats"] - rows)

        # Events, once per job
        lacks = go & window.short
        exceeds = (drains & ((window.level != 0) | window.wasted)) | (closes & ~exactly & (window.remaining != 0))
        for name, happens in (("early_last", lacks), ("late_last", exceeds)):
            told = Signal(name=f"told_{name}")
            m.d.comb += self.events[name].eq(happens & ~told)
            m.d.sync += told.eq((told | happens) & ~window.finishes)
        return m
