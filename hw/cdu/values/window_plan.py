"""Plan of the scale windows of a job."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data
from cdu_spec.config import CduConfig
from cdu_spec.geometry import BLOCK_SIDE

from cdu.alignment.tile_shaper import padded_beats
from cdu.parts.streams import BEATS_BITS
from cdu.parts.wide_sum import wide_difference, wide_sum
from cdu.words import is_one_of

#: Rows of fewer beats than this may end several times in one window.
_NARROW = BLOCK_SIDE
_NARROW_BITS = (_NARROW - 1).bit_length()
#: Bits of the number of places that share a scale.
RUN_BITS = BEATS_BITS + _NARROW_BITS


def window_places(config: CduConfig) -> int:
    """Return the places of a window: the 8 rows of a strip, or the beats of a word where there are no strips."""
    return BLOCK_SIDE if config.has_tiles else config.port_beats


def has_scales(config: CduConfig, mode: Value) -> Value:
    """Return whether jobs of a mode take scales."""
    return is_one_of(mode, [built for built in config.built_modes if built.has_scales])


def is_in_tiles(config: CduConfig, mode: Value) -> Value:
    """Return whether jobs of a mode come in tiles, one strip of 8 rows after the other."""
    return is_one_of(mode, [built for built in config.built_modes if built.in_tiles])


def _times(m: Module, value: Value, factor: Value) -> Value:
    """Return ``value`` times a factor of :data:`_NARROW_BITS` bits, as one sum of two terms."""
    extension = Const(0, RUN_BITS - len(value))
    plain, double = Cat(value, extension), Cat(Const(0, 1), value, extension)[:RUN_BITS]
    fourfold = Cat(Const(0, 2), value, extension)[:RUN_BITS]
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
    first = Signal(RUN_BITS)
    second = Signal(RUN_BITS)
    with m.Switch(factor):
        for number, (one, other) in terms.items():
            with m.Case(number):
                m.d.comb += [first.eq(one), second.eq(other)]
    return wide_sum(first, second, RUN_BITS)


def none(beats: Value) -> Value:
    """Return whether a count in two's complement is zero or negative."""
    return beats[-1] | ~beats.any()


class WindowPlan(data.StructLayout):
    """The windows of a job.

    A scale holds for ``row_places`` places of the windows, ``row_period`` times in turn. A window has ``window_beats`` beats
    and ``places`` places, the last one ``final_places``, where windows have more than one place. ``later_beats`` of the job
    follow the first window; ``single``: none follow, and the first window is the last one, whatever ``later_beats`` says.
    """

    def __init__(self, config: CduConfig) -> None:
        places = range(window_places(config) + 1)
        super().__init__(
            {
                "row_places": RUN_BITS,
                "row_period": BEATS_BITS,
                "window_beats": RUN_BITS,
                "later_beats": BEATS_BITS + 1,
                "single": 1,
                **({"places": places, "final_places": places} if window_places(config) > 1 else {}),
            }
        )


def places_of(config: CduConfig, plan: Any, is_last: Value) -> Value:
    """Return the places of the last window of a :class:`WindowPlan`, or of another one."""
    return Mux(is_last, plan.final_places, plan.places) if window_places(config) > 1 else Const(1)


def window_plan(m: Module, config: CduConfig, job: Any) -> Any:
    """Return the :class:`WindowPlan` of a :class:`~cdu.words.Job` that has scales, combinationally."""
    port_beats, most = config.port_beats, window_places(config)
    plan: Any = Signal(WindowPlan(config), name="planned")
    in_strips = is_in_tiles(config, job.mode)
    beats = padded_beats(config, job)
    span = Signal(RUN_BITS)
    # A narrow row may end several times in a window of several beats, so that all rows of a channel are treated as one.
    narrow: Value = Const(0)
    channel_beats: Value = Const(0)
    if port_beats > 1:
        narrow = ~in_strips & (job.row_beats < _NARROW)
        channel_beats = _times(m, job.channel_rows, job.row_beats[:_NARROW_BITS])
    remainder = beats[: (port_beats - 1).bit_length()]
    m.d.comb += [
        span.eq(Mux(in_strips, job.row_beats << (BLOCK_SIDE - 1).bit_length(), port_beats)),
        plan.row_places.eq(Mux(in_strips, job.channel_rows, Mux(narrow, channel_beats, job.row_beats))),
        plan.row_period.eq(Mux(in_strips | narrow, 1, job.channel_rows)),
        plan.window_beats.eq(span),
        plan.later_beats.eq(wide_difference(beats, span, len(plan.later_beats))),
        plan.single.eq(beats <= span),
    ]
    if most > 1:
        m.d.comb += [
            plan.places.eq(Mux(in_strips, most, port_beats)),
            plan.final_places.eq(Mux(in_strips, most, Mux(remainder == 0, port_beats, remainder))),
        ]
    return plan
