"""Takes the scales of a job and spreads each over the rows or beats that it holds for."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from cdu_spec.affine import BASE_BITS
from cdu_spec.config import CduConfig
from cdu_spec.geometry import BLOCK_SIDE

from cdu.modes import is_one_of
from cdu.sfpr import FP32_BIAS, FP32_FRACTION_BITS
from cdu.streams import BEATS_BITS
from cdu.tile_shaper import padded_beats
from cdu.wide_sum import below, wide_difference, wide_sum
from cdu.words import SCALE_BITS, Job, Scale

#: The float32 pattern of 1.0.
ONE = FP32_BIAS << FP32_FRACTION_BITS

#: Rows of fewer beats than this may end several times in one window.
_NARROW = BLOCK_SIDE
_NARROW_BITS = (_NARROW - 1).bit_length()
#: Width of the number of places that share a scale.
_RUN_BITS = BEATS_BITS + _NARROW_BITS


def window_places(config: CduConfig) -> int:
    """Places of a window: the 8 rows of a strip, or the beats of a word where there are no strips."""
    return BLOCK_SIDE if config.has_tiles else config.port_beats


def scale_width(config: CduConfig) -> int:
    """Bits of a place: a scale and, above it, the offset where a mode has offsets."""
    return SCALE_BITS + (BASE_BITS if config.has_offsets else 0)


def has_scales(config: CduConfig, mode: Value) -> Value:
    """Whether jobs of a mode take scales."""
    return is_one_of(mode, [built for built in config.built_modes if built.has_scales])


def is_in_tiles(config: CduConfig, mode: Value) -> Value:
    """Whether jobs of a mode come in tiles, a strip of 8 rows after the other."""
    return is_one_of(mode, [built for built in config.built_modes if built.in_tiles])


def _times(m: Module, value: Value, factor: Value) -> Value:
    """``value`` times a factor of :data:`_NARROW_BITS` bits, as one sum of two terms."""
    extension = Const(0, _RUN_BITS - len(value))
    plain, double = Cat(value, extension), Cat(Const(0, 1), value, extension)[:_RUN_BITS]
    fourfold = Cat(Const(0, 2), value, extension)[:_RUN_BITS]
    # Seven times is eight times less once, that is plus the complement plus 1.
    seven = (Cat(Const(1, _NARROW_BITS), value), Cat(~value, ~extension))
    terms = {
        1: (plain, 0),
        2: (double, 0),
        3: (double, plain),
        4: (fourfold, 0),
        5: (fourfold, plain),
        6: (fourfold, double),
        7: seven,
    }
    first, second = Signal(_RUN_BITS), Signal(_RUN_BITS)
    with m.Switch(factor):
        for number, (one, other) in terms.items():
            with m.Case(number):
                m.d.comb += [first.eq(one), second.eq(other)]
    return wide_sum(first, second, _RUN_BITS)


def _none(beats: Value) -> Value:
    """Whether a count in two's complement is not positive."""
    return beats[-1] | ~beats.any()


class ScaleWindows(wiring.Component):
    """One window of scales per strip (modes with tiles: one for each of its 8 rows) or per word (one for each of its P beats).

    Rows of the matrix take up one place of a window in tiles and ``row_beats`` places in the other modes; ``channel_rows``
    of them in turn have the same scale. In each cycle one window, or a part of it, gets the scale of the row under way and,
    from where the next row begins, a new one: a window takes as many cycles as there are scales that begin in it, and at least
    one. Whenever a scale serves at least P beats, windows come as fast as words.

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
        hold anything.
    missing
        High for a cycle when 1.0, with the offset 0, stands in for a scale after the last one of a job.
    surplus
        High for a cycle when a job got more scales than it has channels. The rest of them, up to ``last``, is thrown away
        before the next job that has scales.

    Latency 3 cycles.
    """

    job: stream.Interface
    scales: stream.Interface
    o: stream.Interface
    missing: Signal
    surplus: Signal

    latency = 3

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
        places = range(self.places + 1)
        busy = Signal()
        row_places = Signal(_RUN_BITS)
        row_period = Signal(BEATS_BITS)  # rows per scale
        window_beats = Signal(_RUN_BITS)
        later_beats = Signal(_RUN_BITS + 2)  # of the job, behind this window, in two's complement; none: it is the last one
        whole, final_size = Signal(places), Signal(places)  # places of any other window, of the last one

        filling: Any = Signal(data.ArrayLayout(self.width, self.places), reset_less=True)
        filled = Signal()
        place, room = Signal(places), Signal(places)  # done and to do in this window
        rest = Signal(_RUN_BITS)  # places of the row under way
        rows_left = Signal(BEATS_BITS)  # with the scale of that row, this one not among them
        current = Signal(self.width, reset_less=True)
        ended = Signal()  # the last scale of the job has come
        discarding = Signal()

        # In this cycle the row under way serves places up to ``limit``, then, if it ends here, a new one begins, which takes
        # the ``space`` behind it or, when it is short, leaves places for the next cycle.
        begins, short, takes, go = Signal(), Signal(), Signal(), Signal()
        new, fresh = Signal(self.width), Signal()
        limit, space = Signal(range(2 * self.places)), Signal(places)
        final, complete = Signal(), Signal()
        move = filled & (~self.o.valid | self.o.ready)
        scale = self.scales.payload
        m.d.comb += [
            begins.eq(below(rest, room)),
            limit.eq(place + rest[: len(room)]),
            space.eq(room - rest[: len(room)]),
            short.eq(below(row_places, space)),
            fresh.eq(begins & (rows_left == 0)),
            takes.eq(busy & (~filled | move) & fresh & ~ended),
            go.eq(busy & (~filled | move) & ~(takes & (discarding | ~self.scales.valid))),
            new.eq(Mux(rows_left != 0, current, Mux(ended, ONE, Cat(scale.value, scale.offset)[: self.width]))),
            self.scales.ready.eq(discarding | takes),
            self.missing.eq(go & fresh & ended),
            complete.eq(~begins | ~short),
            final.eq(_none(later_beats)),
            self.surplus.eq(go & complete & final & ~ended & ~(takes & scale.last)),
            self.job.ready.eq(~busy | (go & complete & final)),
        ]
        with m.If(move):
            m.d.sync += filled.eq(0)
        with m.If(discarding & self.scales.valid & scale.last):
            m.d.sync += discarding.eq(0)
        with m.If(go):
            for lane in range(self.places):
                with m.If(lane >= place):
                    m.d.sync += filling[lane].eq(Mux(~begins | (lane < limit), current, new))
            with m.If(begins):
                m.d.sync += [
                    current.eq(new),
                    rest.eq(Mux(short, 0, wide_difference(row_places, space, _RUN_BITS))),
                    rows_left.eq(Mux(rows_left == 0, row_period, rows_left) - 1),
                    ended.eq(ended | (takes & scale.last)),
                ]
            with m.Else():
                m.d.sync += rest.eq(wide_difference(rest, room, _RUN_BITS))
            with m.If(complete):
                later = wide_difference(later_beats, window_beats, len(later_beats))
                m.d.sync += [
                    filled.eq(1),
                    place.eq(0),
                    room.eq(Mux(_none(later), final_size, whole)),
                    later_beats.eq(later),
                ]
            with m.Else():
                m.d.sync += [place.eq(limit + row_places[: len(place)]), room.eq(space - row_places[: len(room)])]
        with m.If(self.surplus):
            m.d.sync += discarding.eq(1)

        with m.If(self.job.ready):
            self._begin(m, busy, row_places, row_period, window_beats, later_beats, whole, final_size, room)
            m.d.sync += [rest.eq(0), rows_left.eq(0), ended.eq(0)]
        with m.If(~self.o.valid | self.o.ready):
            m.d.sync += [self.o.valid.eq(filled), self.o.payload.eq(filling)]
        return m

    def _begin(
        self,
        m: Module,
        busy: Signal,
        row_places: Signal,
        row_period: Signal,
        window_beats: Signal,
        later_beats: Signal,
        whole: Signal,
        final_size: Signal,
        room: Signal,
    ) -> None:
        """Take the next job, if there is one."""
        port_beats = self.config.port_beats
        job = self.job.payload
        in_strips = is_in_tiles(self.config, job.mode)
        beats = padded_beats(self.config, job)
        span, size, last_size = Signal(_RUN_BITS), Signal.like(whole), Signal.like(whole)
        # A narrow row may end more than once in a window, so that all rows of a channel count as one.
        narrow = ~in_strips & (job.row_beats < _NARROW)
        channel_beats = _times(m, job.channel_rows, job.row_beats[:_NARROW_BITS])
        remainder = beats[: (port_beats - 1).bit_length()]
        m.d.comb += [
            span.eq(Mux(in_strips, job.row_beats << (BLOCK_SIDE - 1).bit_length(), port_beats)),
            size.eq(Mux(in_strips, self.places, port_beats)),
            last_size.eq(Mux(in_strips, self.places, Mux(remainder == 0, port_beats, remainder))),
        ]
        later = wide_difference(beats, span, len(later_beats))
        m.d.sync += [
            busy.eq(self.job.valid & has_scales(self.config, job.mode)),
            row_places.eq(Mux(in_strips, job.channel_rows, Mux(narrow, channel_beats, job.row_beats))),
            row_period.eq(Mux(in_strips | narrow, 1, job.channel_rows)),
            window_beats.eq(span),
            later_beats.eq(later),
            whole.eq(size),
            final_size.eq(last_size),
            room.eq(Mux(_none(later), last_size, size)),
        ]
