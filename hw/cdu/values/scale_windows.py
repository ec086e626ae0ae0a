"""Windows of scales: each scale of a job is repeated for the rows or beats that it holds for."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from cdu_spec import latencies
from cdu_spec.affine import BASE_BITS
from cdu_spec.config import CduConfig

from cdu.parts.streams import BEATS_BITS
from cdu.parts.wide_sum import below, wide_difference
from cdu.values.sfpr import FP32_BIAS, FP32_FRACTION_BITS
from cdu.values.window_plan import RUN_BITS, WindowPlan, has_scales, none, places_of, window_places, window_plan
from cdu.words import SCALE_BITS, Job, Scale

#: The float32 pattern of 1.0.
ONE = FP32_BIAS << FP32_FRACTION_BITS


def scale_width(config: CduConfig) -> int:
    """Return the bits of a place: a scale and, above it, the offset if a mode has offsets."""
    return SCALE_BITS + (BASE_BITS if config.has_offsets else 0)


class _Row:
    """The row under way, its scale of ``width`` bits, and the part of a window of ``places`` that it serves in this cycle.

    The current row serves places up to ``limit``; if it ends here, a new one begins, which takes the ``space`` behind it or, if
    it is short, leaves places for the next cycle.
    """

    def __init__(self, width: int, places: int) -> None:
        self.rest = Signal(RUN_BITS, reset_less=True)  # its places
        self.rows_left = Signal(BEATS_BITS, reset_less=True)  # with its scale, this one not among them
        self.current = Signal(width, reset_less=True)
        self.ended = Signal()  # the last scale of the job has come
        self.begins = Signal()
        self.short = Signal()
        self.limit = Signal(range(2 * places))
        self.space = Signal(range(places + 1))


class ScaleWindows(wiring.Component):
    """Make one window of scales per strip (modes with tiles: one for each of 8 rows) or per word (one for each of P beats).

    Rows of the matrix take up one place of a window in tiles and ``row_beats`` places in the other modes; ``channel_rows``
    consecutive rows have the same scale. In each cycle one window, or a part of it, gets the scale of the current row and,
    from where the next row begins, a new one: a window takes as many cycles as scales begin in it, and at least one. If every
    scale serves at least P beats, windows come as fast as words.

    Parameters
    ----------
    config
        P and ``modes`` are used.

    Ports
    -----
    job
        Stream of :class:`~cdu.words.Job`; jobs of the modes brc and bypass have no windows.
    scales
        Stream of :class:`~cdu.words.Scale`: for every job one scale per ``channel_rows`` rows, as far as they begin within
        its beats (those of the padding included).
    o
        Stream of windows, places of :func:`scale_width` bits: the scale, above it the offset. Places behind the beats of a job
        are undefined.
    missing
        High for a cycle when 1.0, with the offset 0, replaces a scale after the last one of a job.
    surplus
        High for a cycle if a job got more scales than it has channels. The rest of them, up to ``last``, is dropped before the
        next job that has scales.

    Latency: 3 cycles.
    """

    job: stream.Interface
    scales: stream.Interface
    o: stream.Interface
    missing: Signal
    surplus: Signal

    latency = latencies.SCALE_WINDOWS

    def __init__(self, config: CduConfig) -> None:
        self.config = config
        self.places = window_places(config)
        self.width = scale_width(config)
        super().__init__(
            {
                "job": In(stream.Signature(Job())),
                "scales": In(stream.Signature(Scale())),
                "o": Out(stream.Signature(data.ArrayLayout(self.width, self.places))),
                "missing": Out(1),
                "surplus": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        next_plan = window_plan(m, self.config, self.job.payload)
        places = range(self.places + 1)
        busy = Signal()
        plan: Any = Signal(WindowPlan(self.config), reset_less=True)  # of this job, as far as it stays the same
        later_beats = Signal.like(plan.later_beats, reset_less=True)  # of the job, behind this window
        final = Signal()  # this window is the last one of the job

        filling: Any = Signal(data.ArrayLayout(self.width, self.places), reset_less=True)
        window: Any = Signal.like(filling, reset_less=True)  # that goes out
        filled = Signal()
        # done and to do in this window
        place = Signal(places)
        room = Signal(places, reset_less=True)
        row = _Row(self.width, self.places)
        begins, short, limit, space = row.begins, row.short, row.limit, row.space
        rest, rows_left, current, ended = row.rest, row.rows_left, row.current, row.ended
        discarding = Signal()

        takes = Signal()
        go = Signal()
        new = Signal(self.width)
        fresh = Signal()
        complete = Signal()
        move = filled & (~self.o.valid | self.o.ready)
        scale = self.scales.payload
        m.d.comb += [
            begins.eq(below(rest, room)),
            limit.eq(place + rest[: len(room)]),
            space.eq(room - rest[: len(room)]),
            short.eq(below(plan.row_places, space)),
            fresh.eq(begins & (rows_left == 0)),
            takes.eq(busy & (~filled | move) & fresh & ~ended),
            go.eq(busy & (~filled | move) & ~(takes & (discarding | ~self.scales.valid))),
            new.eq(Mux(rows_left != 0, current, Mux(ended, ONE, Cat(scale.value, scale.offset)[: self.width]))),
            self.scales.ready.eq(discarding | takes),
            self.o.payload.eq(window),
            self.missing.eq(go & fresh & ended),
            complete.eq(~begins | ~short),
            self.surplus.eq(go & complete & final & ~ended & ~(takes & scale.last)),
            self.job.ready.eq(~busy | (go & complete & final)),
        ]
        with m.If(move):
            m.d.sync += filled.eq(0)
        with m.If(discarding & self.scales.valid & scale.last):
            m.d.sync += discarding.eq(0)
        with m.If(go):
            self._serve(m, plan, row, filling, place, room, new, takes & scale.last)
            with m.If(complete):
                later = wide_difference(later_beats, plan.window_beats, RUN_BITS + 1)
                m.d.sync += [
                    filled.eq(1),
                    place.eq(0),
                    room.eq(places_of(self.config, plan, none(later))),
                    later_beats.eq(later),
                    final.eq(none(later)),
                ]
            with m.Else():
                m.d.sync += [place.eq(limit + plan.row_places[: len(place)]), room.eq(space - plan.row_places[: len(room)])]
        with m.If(self.surplus):
            m.d.sync += discarding.eq(1)

        with m.If(self.job.ready):
            m.d.sync += [
                busy.eq(self.job.valid & has_scales(self.config, self.job.payload.mode)),
                plan.eq(next_plan),
                later_beats.eq(next_plan.later_beats),
                room.eq(places_of(self.config, next_plan, next_plan.single)),
                final.eq(next_plan.single),
                rest.eq(0),
                rows_left.eq(0),
                ended.eq(0),
            ]
        with m.If(~self.o.valid | self.o.ready):
            m.d.sync += [self.o.valid.eq(filled), window.eq(filling)]
        return m

    def _serve(self, m: Module, plan: Any, row: _Row, filling: Any, place: Value, room: Value, new: Value, last: Value) -> None:
        """Give the scale of the current row to its places of a window, and to the places behind them the ``new`` one.

        ``place`` and ``room`` are the places done and to do; ``last`` says that the new scale is the last one of the job.
        """
        for lane in range(self.places):
            with m.If(lane >= place):
                m.d.sync += filling[lane].eq(Mux(~row.begins | (lane < row.limit), row.current, new))
        with m.If(row.begins):
            m.d.sync += [
                row.current.eq(new),
                row.rest.eq(Mux(row.short, 0, wide_difference(plan.row_places, row.space, RUN_BITS))),
                row.rows_left.eq(Mux(row.rows_left == 0, plan.row_period, row.rows_left) - 1),
                row.ended.eq(row.ended | last),
            ]
        with m.Else():
            m.d.sync += row.rest.eq(wide_difference(row.rest, room, RUN_BITS))
