"""Splitter: finds the blocks in a payload and deals them out to N CDUs (JPEG-ACT, "splitter")."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out
from cdu_spec.affine import CODE_BITS
from cdu_spec.bitstream import LOW_BYTES, MASK_BYTES, MAX_BLOCK_BYTES, RANGE_BYTES, Mode
from cdu_spec.config import CduConfig
from cdu_spec.geometry import BLOCK_SIDE, BLOCK_VALUES, LANES, TILE_BLOCKS, VALUE_BITS

from cdu.coding.code_packing import code_bytes
from cdu.coding.zvc import popcount
from cdu.parts.barrel import shift_left, shift_right
from cdu.parts.streams import BEATS_BITS
from cdu.parts.turns import round_robin
from cdu.words import Job, JobEvents, PackedWord, Quantizer, Slice, is_one_of


@dataclass(frozen=True)
class _Step:
    """What is done with the bytes at the front of the window when they are there."""

    enough: Value  #: they are there
    gives: Value  #: a slice
    bits: Value  #: that begins with these bytes
    count: Value  #: of which it has so many
    ends: Value  #: and is the last one of its block
    amount: Value  #: bytes that leave the window
    rest: Value  #: bytes of the block in or behind the window afterwards
    done: Value  #: the block has left the window


class Splitter(wiring.Component):
    """Cuts a payload into blocks, and blocks into slices for N lanes in turn.

    Bytes wait in a window that begins with a block. With N above 4 a block's length is found and its first slice removed in one
    cycle. Else a block has more than one cycle, and what a cycle finds out is used in the next one: in the first cycle the
    length is found and the first slice is given, in each later one a slice is given and the one before removed, in the last one
    both.

    Parameters
    ----------
    config
        N, S, M and ``modes``.

    Ports
    -----
    job
        Stream of :class:`~cdu.words.Job`: ``mode``, ``bank``, ``beats`` and ``quantizer`` are used. One is taken in the cycle
        in which the last bytes of the one before are used up.
    i
        Stream of :class:`~cdu.words.PackedWord` of any count. The first word of a job is the one after a ``last``. Words may
        come before their job.
    o
        N streams of :class:`~cdu.words.Slice`.
    events
        ``early_last``: zeros are handed out as the payload has ended. ``late_last``: bytes behind the last block are thrown
        away, up to ``last``. At most once per job each.
    idle
        No job.

    Latency 2 cycles from a word that completes a slice, with N up to 4 one more where the slice is a whole block. A block takes
    as many cycles as it has slices, with N up to 4 at least two; jobs follow each other without a pause when their payloads
    have the right length.
    """

    job: stream.Interface
    i: stream.Interface
    o: list[stream.Interface]
    events: Any
    idle: Signal

    def __init__(self, config: CduConfig) -> None:
        self.config = config
        self.size, self.word_bytes = config.slice_bytes, config.packed_bytes
        #: Whether a block has time for a cycle in which its length is found.
        self.looks_first = BLOCK_SIDE // config.cdus > 1
        self.reach = (2 if self.looks_first else 1) * self.size
        super().__init__(
            {
                "job": In(stream.Signature(Job())),
                "i": In(stream.Signature(PackedWord(config))),
                "o": Out(stream.Signature(Slice(config))).array(config.cdus),
                "events": Out(JobEvents()),
                "idle": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        # With so much room a word is taken in every cycle in which the window could run short in the next one.
        room = self.reach + self.word_bytes - 1
        window = Signal(8 * room)  # zeros behind the level
        level = Signal(range(room + 1))
        ended = Signal()  # the window holds the last bytes of the job

        # The job and its blocks
        busy, drain = Signal(), Signal()
        mode, bank = Signal(Mode), Signal()
        quantizer: Any = Signal(Quantizer())
        beats = Signal(BEATS_BITS)  # of blocks not yet begun
        only, rows = Signal(), Signal(range(BLOCK_SIDE + 1))
        m.d.comb += [
            only.eq(beats <= BLOCK_SIDE),
            rows.eq(Mux(only, beats[: len(rows)], BLOCK_SIDE)),
        ]

        # One slice
        first = Signal(init=1)
        length = Signal(range(MAX_BLOCK_BYTES + 1))
        block_begins, begins = Signal(), Signal()
        heads, head_bytes = self._heads(m, mode, quantizer, block_begins, begins)
        m.d.comb += length.eq(self._length(m, mode, quantizer, head_bytes, window, rows))
        rest = Signal.like(length)  # bytes of the block in or behind the window
        step = self._step(window, level, ended, first, length, rest)
        out_valid, out_ready = Signal(), Signal()
        out: Any = Signal(Slice(self.config))
        advance = ~out_valid | out_ready
        go = Signal()
        m.d.comb += go.eq(busy & ~drain & step.enough & (advance | ~step.gives))
        final = Signal()  # the block is the last of its job
        block_rows, block_final, block_heads = Signal.like(rows), Signal(), Signal()
        m.d.comb += [final.eq(Mux(first, only, block_final)), block_begins.eq(go & first)]
        with m.If(go):
            m.d.sync += [first.eq(step.done), rest.eq(step.rest)]
            with m.If(first):
                m.d.sync += [beats.eq(beats - rows), block_rows.eq(rows), block_final.eq(only), block_heads.eq(heads)]
        # The last slice of a block is not shown before the block's second cycle: if one that fits into a single slice came
        # earlier, the first longer one after it would come late, and with N = 4 there is no cycle to make up for that.
        waits = Signal()
        if self.looks_first:
            m.d.sync += waits.eq(go & first & step.ends)
        with m.If(advance):
            m.d.sync += out_valid.eq(go & step.gives)
            m.d.sync += [
                out["data"].eq(step.bits),
                out["count"].eq(step.count),
                out["ends"].eq(step.ends),
                out["rows"].eq(Mux(first, rows, block_rows)),
                out["tag"]["mode"].eq(mode),
                out["tag"]["bank"].eq(bank),
                out["tag"]["last"].eq(final),
                out["tag"]["quantizer"].eq(quantizer),
                out["tag"]["heads"].eq(Mux(first, heads, block_heads)),
            ]
        bits = Signal(8 * self.size)
        bytes_kept = (Mux(out["count"] > place, out["data"].word_select(place, 8), 0) for place in range(self.size))
        m.d.comb += bits.eq(Cat(*bytes_kept))
        turn = round_robin(m, self.config.cdus, out_valid & out_ready & out["ends"], "turn")
        for lane, sink in enumerate(self.o):
            mine = turn == lane
            m.d.comb += [
                sink.valid.eq(out_valid & ~waits & mine),
                sink.payload.eq(out),
                sink.payload["data"].eq(bits),
            ]
            with m.If(mine):
                m.d.comb += out_ready.eq(sink.ready & ~waits)

        # What leaves the window, and what comes in
        amount = Signal(range(self.reach + 1))
        remaining = Signal.like(level)
        short = Signal()
        with m.If(drain):
            m.d.comb += amount.eq(self.reach)
        with m.Elif(go):
            m.d.comb += amount.eq(step.amount)
        m.d.comb += [
            short.eq(amount > level),
            remaining.eq(Mux(short, 0, level - amount)),
        ]
        closes = Signal()  # the last block of the job leaves the window
        exactly = Signal()  # and nothing is left behind it
        finishes = Signal()
        word, takes = self.i.payload, Signal()
        m.d.comb += [
            closes.eq(go & step.done & final),
            exactly.eq(ended & (remaining == 0)),
            finishes.eq((closes | drain) & exactly),
            self.job.ready.eq(~busy | finishes),
            begins.eq(self.job.ready & self.job.valid),
            # While a job's last bytes are in the window, the next word belongs to the next job.
            self.i.ready.eq((finishes | ~ended) & (drain | (remaining <= room - self.word_bytes))),
            takes.eq(self.i.valid & self.i.ready),
        ]
        discards, loads = drain & ~finishes, Signal()
        m.d.comb += loads.eq(takes & ~discards)
        fresh = Signal(8 * room)
        m.d.comb += fresh.eq(Mux(loads, word["data"], 0))
        kept = shift_right(m, window, amount, "kept")
        m.d.sync += [
            window.eq(kept | shift_left(m, fresh, remaining, "fresh")),
            level.eq(remaining + Mux(loads, word["count"], 0)),
            ended.eq(Mux(takes, word["last"], ended & ~finishes)),
        ]
        with m.If(finishes | ~busy):
            m.d.sync += [busy.eq(self.job.valid), drain.eq(0)]
        with m.Elif(closes):
            m.d.sync += drain.eq(1)
        with m.If(begins):
            job = self.job.payload
            m.d.sync += [mode.eq(job["mode"]), bank.eq(job["bank"]), beats.eq(job["beats"])]
            if self.config.has_affine:
                m.d.sync += quantizer.eq(job["quantizer"])

        # Events, once per job
        early, late = Signal(), Signal()
        lacks = go & short
        exceeds = (drain & ((level != 0) | (takes & discards & (word["count"] != 0)))) | (closes & ~exactly & (remaining != 0))
        m.d.comb += [
            self.events["early_last"].eq(lacks & ~early),
            self.events["late_last"].eq(exceeds & ~late),
            self.idle.eq(~busy),
        ]
        m.d.sync += [early.eq((early | lacks) & ~finishes), late.eq((late | exceeds) & ~finishes)]
        return m

    def _heads(self, m: Module, mode: Value, quantizer: Any, block_begins: Value, job_begins: Value) -> tuple[Value, Value]:
        """Whether the next block to begin begins with its range, and how many bytes that has."""
        if not self.config.has_ranges:
            return Const(0), Const(0)
        number = Signal(range(TILE_BLOCKS), name="number_in_tile")
        with m.If(job_begins):
            m.d.sync += number.eq(0)
        with m.Elif(block_begins):
            m.d.sync += number.eq(number + 1)
        heads, division = Signal(), mode == Mode.DIVISION
        m.d.comb += heads.eq(division | ((mode == Mode.ACTNN) & (number == 0)))
        size = Mux(division & ~quantizer["block_range"], LOW_BYTES, RANGE_BYTES)
        return heads, Mux(heads, size, 0)

    def _length(self, m: Module, mode: Value, quantizer: Any, head_bytes: Value, window: Value, rows: Value) -> Value:
        """Bytes of the block with which the window begins."""
        modes = self.config.built_modes
        mask = window[:BLOCK_VALUES]
        value: Value = rows << 3
        if Mode.BRC in modes:
            value = Mux(mode == Mode.BRC, rows, value)
        affine = is_one_of(mode, [mode for mode in modes if mode.is_affine])
        if self.config.has_affine:
            value = Mux(affine, (rows << quantizer["bits_log2"]) + head_bytes, value)
        zvc_modes = [mode for mode in modes if mode.has_zvc]
        if zvc_modes:
            populations: list[Value] = [popcount(mask.word_select(row, LANES)) for row in range(MASK_BYTES)]
            if Mode.AUTOQUANTZ in modes:
                bits_log2 = Mux(affine, quantizer["bits_log2"], CODE_BITS.index(VALUE_BITS))
                populations = [code_bytes(m, count, bits_log2, f"row_bytes{row}") for row, count in enumerate(populations)]
            while len(populations) > 1:
                populations = [one + other for one, other in zip(populations[::2], populations[1::2], strict=True)]
            value = Mux(is_one_of(mode, zvc_modes), MASK_BYTES + populations[0], value)
        return value

    def _step(self, window: Value, level: Value, ended: Value, first: Value, length: Value, rest: Value) -> _Step:
        size = self.size
        if not self.looks_first:
            present = Mux(first, length, rest)
            done = present <= size
            return _Step(
                enough=ended | (level >= size),
                gives=Const(1),
                bits=window[: 8 * size],
                count=Mux(done, present, size),
                ends=done,
                amount=Mux(done, present, size),
                rest=present - size,
                done=done,
            )
        done = ~first & (rest <= 2 * size)
        given = Mux(first, length, rest - size)
        ends = given <= size
        return _Step(
            enough=ended | (level >= 2 * size) | (first & (level >= size)),
            gives=first | (rest > size),
            bits=Mux(first, window[: 8 * size], window[8 * size : 16 * size]),
            count=Mux(ends, given, size),
            ends=ends,
            amount=Mux(first, 0, Mux(done, rest, size)),
            rest=Mux(first, length, rest - size),
            done=done,
        )
