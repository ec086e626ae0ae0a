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


class _Run:
    """The job in progress, with the number of its beats whose blocks have not begun."""

    def __init__(self) -> None:
        self.busy = Signal()
        self.drains = Signal()
        self.job: Any = Signal(Job())
        self.closes = Signal()  # its last block leaves the window
        self.exactly = Signal()  # it does, and nothing is behind it


class _Front:
    """The block at the front of the window, of which slices of ``size`` bytes leave; its length has ``bits`` bits."""

    def __init__(self, size: int, bits: int) -> None:
        self.begun = Signal()  # it is known
        self.whole = Signal()  # nothing of it has left the window
        self.rest = Signal(bits)  # its bytes in or behind the window
        self.block: Any = Signal(_Block)
        self.ends = Signal()
        self.count = Signal(range(size + 1))
        self.enough = Signal()
        self.go = Signal()


class _Behind:
    """The block behind the one at the front: of the job in progress, or the first one of the next."""

    def __init__(self, size: int) -> None:
        self.first = Signal()
        self.of: Any = Signal(Job())
        self.only = Signal()
        self.rows = Signal(range(BLOCK_SIDE + 1))
        self.after = Signal(range(size + 1))  # bytes of the window before it
        self.seen = Signal()  # the bytes that tell its length are there
        self.begins = Signal()


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
        run, front, behind = _Run(), _Front(self.size, len(head.length)), _Behind(self.size)
        m.d.comb += [self.idle.eq(~run.busy), self.job.ready.eq(~run.busy | window.finishes)]
        m.d.comb += [
            front.ends.eq(front.rest <= self.size),
            front.count.eq(Mux(front.ends, front.rest, self.size)),
            front.enough.eq(window.ended | (window.level >= self.size)),
            front.go.eq(front.begun & front.enough & dealer.i.ready),
        ]
        self._find(m, window, head, run, front, behind)
        self._deal(m, window, head, dealer, run, front, behind)
        self._run(m, window, head, run, front, behind)
        self._tell(m, window, run, front)
        return m

    def _find(self, m: Module, window: ByteWindow, head: BlockLength, run: _Run, front: _Front, behind: _Behind) -> None:
        """Find the rows and the length of the block behind the one at the front, once the bytes that tell them are there."""
        m.d.comb += [
            behind.first.eq(front.begun & front.block.last),
            behind.of.eq(Mux(behind.first, self.job.payload.as_value(), run.job.as_value())),
            behind.only.eq(behind.of["beats"] <= BLOCK_SIDE),
            behind.rows.eq(Mux(behind.only, behind.of["beats"][: len(behind.rows)], BLOCK_SIDE)),
        ]
        if self.config.has_mx and self.config.mx_rows < BLOCK_SIDE:
            with m.If(behind.of["mode"] == Mode.MX):
                m.d.comb += [
                    behind.only.eq(behind.of["beats"] <= self.config.mx_rows),
                    behind.rows.eq(self.config.mx_rows),
                ]
        word = self.i.payload
        m.d.comb += [
            behind.after.eq(Mux(front.begun, front.count, 0)),
            head.mode.eq(behind.of["mode"]),
            head.how.eq(behind.of["how"]),
            head.rows.eq(behind.rows),
            head.bytes.eq(window.data),
            head.place.eq(behind.after),
            head.first.eq(behind.first),
            head.fresh.eq(word["data"]),
            head.job_begins.eq(self.job.ready & self.job.valid),
            head.block_begins.eq(behind.begins),
        ]
        word_tells = self.i.valid & (word["last"] | (word["count"] >= MASK_BYTES))
        window_tells = window.ended | (window.level >= behind.after + MASK_BYTES)
        next_job = run.closes & run.exactly & self.job.valid
        same_job = run.busy & ~run.drains & (~front.begun | (front.go & front.ends))
        m.d.comb += [
            behind.seen.eq(~head.looks | Mux(behind.first, word_tells, window_tells)),
            behind.begins.eq(Mux(behind.first, next_job, same_job) & behind.seen),
        ]

    def _deal(
        self,
        m: Module,
        window: ByteWindow,
        head: BlockLength,
        dealer: SliceDealer,
        run: _Run,
        front: _Front,
        behind: _Behind,
    ) -> None:
        """Give slices of the block at the front, which the block behind it follows."""
        with m.If(behind.begins):
            m.d.sync += [
                front.begun.eq(1),
                front.whole.eq(1),
                front.rest.eq(head.length),
                front.block.rows.eq(behind.rows),
                front.block.last.eq(behind.only),
                front.block.heads.eq(head.heads),
            ]
        with m.Elif(front.go):
            m.d.sync += [front.begun.eq(~front.ends), front.whole.eq(0), front.rest.eq(front.rest - self.size)]
        offered = dealer.i.payload
        m.d.comb += [
            dealer.i.valid.eq(front.begun & front.enough),
            offered["data"].eq(window.data[: 8 * self.size]),
            offered["count"].eq(front.count),
            offered["ends"].eq(front.ends),
            offered["rows"].eq(front.block.rows),
            offered["tag"]["mode"].eq(run.job["mode"]),
            offered["tag"]["bank"].eq(run.job["bank"]),
            offered["tag"]["last"].eq(front.block.last),
            offered["tag"]["how"].eq(run.job["how"]),
            offered["tag"]["heads"].eq(front.block.heads),
        ]
        if BLOCK_SIDE // self.config.cdus > 1:
            # A slice that is a whole block is not shown before a second cycle: if it were earlier, the first longer block
            # after it would come late, and with N = 4 there is no cycle to make up for that.
            in_mx = run.job["mode"] == Mode.MX if self.config.has_mx else Const(0)
            m.d.comb += dealer.waits.eq(front.whole & front.ends & ~in_mx)

    def _run(self, m: Module, window: ByteWindow, head: BlockLength, run: _Run, front: _Front, behind: _Behind) -> None:
        """Take bytes from the window and count the blocks of the job; what is left behind the last one drains."""
        m.d.comb += [
            window.amount.eq(Mux(run.drains, self.reach, Mux(front.go, front.count, 0))),
            window.drains.eq(run.drains),
            run.closes.eq(front.go & front.ends & front.block.last),
            run.exactly.eq(window.ended & (window.remaining == 0)),
            window.finishes.eq((run.closes | run.drains) & run.exactly),
        ]
        with m.If(window.finishes | ~run.busy):
            m.d.sync += [run.busy.eq(self.job.valid), run.drains.eq(0)]
        with m.Elif(run.closes):
            m.d.sync += run.drains.eq(1)
        with m.If(head.job_begins):
            m.d.sync += [run.job[name].eq(self.job.payload[name]) for name in ("mode", "bank", "beats")]
            if self.config.has_affine or self.config.has_gmc or self.config.has_mx:
                m.d.sync += run.job["how"].eq(self.job.payload["how"])
        with m.If(behind.begins):
            m.d.sync += run.job["beats"].eq(behind.of["beats"] - behind.rows)

    def _tell(self, m: Module, window: ByteWindow, run: _Run, front: _Front) -> None:
        """Give the events of a payload of the wrong length, once per job."""
        lacks = front.go & window.short
        drained = run.drains & ((window.level != 0) | window.wasted)
        exceeds = drained | (run.closes & ~run.exactly & (window.remaining != 0))
        for name, happens in (("early_last", lacks), ("late_last", exceeds)):
            told = Signal(name=f"told_{name}")
            m.d.comb += self.events[name].eq(happens & ~told)
            m.d.sync += told.eq((told | happens) & ~window.finishes)
