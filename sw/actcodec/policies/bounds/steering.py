"""Make a unit's registers follow an allowed error: one kind of setting for one tensor, corrected by measurements.

A *gain* is the step of a quantiser in units of the allowed RMS error. It does not depend on magnitudes, so that it stays
valid while gradients, and the errors they allow, grow or shrink. Its first value assumes errors that are uniform over a step,
and each measurement corrects it. Errors grow in proportion to fine steps, and more slowly when few values are left; the last
two measurements give the rate of growth.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log, sqrt
from typing import Any

from cdu_spec.modes import Mode

from actcodec.codecs.acgc.steered_codec import SteeredCodec

#: Quantiser step over RMS error for errors that are uniform over a step: rounding to nearest, and stochastic rounding.
_NEAREST, _RANDOM = sqrt(12), sqrt(6)
#: With a gain of 1 hardly any value is off by more than the allowed error; larger errors then come from too few bits.
_LEAST_GAIN = 1.0
#: Step in units of the largest magnitude beyond which every code is zero; coefficients are up to 8 times as large as values.
_MOST_STEP = 16.0
#: Stands for an error of zero, which has no logarithm.
_LEAST_USED = 1e-6
#: Largest factor by which one measurement changes a gain, up or down.
_MOST_CHANGE = 4.0
#: Least accepted growth of errors, and least distance between the logarithms of two steps for an estimate of the growth.
_LEAST_GROWTH, _APART = 0.3, 0.05
#: Excess over the allowed error that still counts as within it: for a step that cannot be made smaller, and for one that the
#: next step corrects.
_FINEST_TOLERANCE, _TOLERANCE = 0.05, 0.25


@dataclass
class Lane:
    """Knowledge about a tensor with one kind of setting."""

    gain: float
    point: int  #: reconstruction point in eighths
    growth: float = 1.0  #: exponent in error ~ step ** growth
    at: tuple[float, float] | None = None  #: logarithms of step and error of the last measurement
    used: float = 0.0  #: last measured error over the allowed one
    nbytes: int = 0  #: bytes at the last measurement
    finest: bool = False  #: True when the step was the smallest possible

    @property
    def cost(self) -> tuple[float, int]:
        """Return a key whose minimum marks the best lane: fewest bytes within the allowed error, else the nearest error."""
        kept = self.used <= 1 + (_FINEST_TOLERANCE if self.finest else _TOLERANCE)
        return 1.0 if kept else self.used, self.nbytes

    @classmethod
    def new(cls, codec: SteeredCodec, mode: Mode) -> Lane:
        """Return a lane without measurements."""
        return cls(_RANDOM if mode is Mode.AUTOQUANTZ else _NEAREST, codec.first_point(mode))

    def step(self, allowed: float) -> float:
        """Return the step of the quantiser, in the units of the allowed error."""
        return min(self.gain * allowed, _MOST_STEP)

    def correct(self, used: dict[int, float], allowed: float, least_step: float, nbytes: int) -> None:
        """Correct gain and point from a measurement: error over allowed error by reconstruction point, and bytes."""
        self.used, self.nbytes, self.finest = used[self.point], nbytes, self.step(allowed) <= least_step
        self.point = min(used, key=used.__getitem__)
        found = max(used[self.point], _LEAST_USED)
        step, error = log(self.step(allowed)), log(found * allowed)
        if self.at is not None and abs(step - self.at[0]) > _APART:
            self.growth = min(max((error - self.at[1]) / (step - self.at[0]), _LEAST_GROWTH), 1.0)
        self.at = step, error
        change = min(max(found ** (-1 / self.growth), 1 / _MOST_CHANGE), _MOST_CHANGE)
        self.gain = max(self.step(allowed) / allowed * change, _LEAST_GAIN)

    def state_dict(self) -> dict[str, Any]:
        """Return all knowledge as plain values."""
        return dict(vars(self))
