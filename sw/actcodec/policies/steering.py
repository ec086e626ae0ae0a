"""How the registers of a unit follow an allowed error: one kind of setting for one tensor, by what was measured before.

A *gain* is the step of a quantiser in units of the error (RMS) that is allowed. It is the same for all magnitudes, so that it
stays right while gradients, and what they allow, grow or shrink. It begins as for errors that are uniform over a step, and each
measurement corrects it. Errors grow as steps do while these are fine, and more slowly when little is left of the values: how
much more slowly the last two measurements say.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log, sqrt
from typing import Any

from cdu_spec.bitstream import Mode

from actcodec.codecs.acgc.steered_codec import SteeredCodec

#: Step per RMS error where errors are uniform: rounding to nearest, and at random.
_NEAREST, _RANDOM = sqrt(12), sqrt(6)
#: With a gain of 1 no value is off by more than about what is allowed: what is then off more is so for want of bits.
_LEAST_GAIN = 1.0
#: Step beyond which everything is zero, in units of the largest magnitude: coefficients are up to 8 times as large.
_MOST_STEP = 16.0
#: An error of zero, of which there is no logarithm.
_LEAST_USED = 1e-6
#: Most that one measurement changes a gain, up or down.
_MOST_CHANGE = 4.0
#: Least growth of errors that is believed, and least distance of the logarithms of two steps that says something of it.
_LEAST_GROWTH, _APART = 0.3, 0.05
#: What an error may be beyond the allowed one and still count as kept: with a step that cannot be made smaller, and with one
#: that is put right in the next step.
_FINEST_TOLERANCE, _TOLERANCE = 0.05, 0.25


@dataclass
class Lane:
    """What is known of a tensor with one kind of setting."""

    gain: float
    point: int  #: reconstruction point in eighths
    growth: float = 1.0  #: of errors with steps, logarithm by logarithm
    at: tuple[float, float] | None = None  #: logarithms of step and error of the last measurement
    used: float = 0.0  #: last measured error over the allowed one
    nbytes: int = 0  #: that it then took
    finest: bool = False  #: whether its step was the least one there is

    @property
    def cost(self) -> tuple[float, int]:
        """The least of several is best: fewest bytes where the error is kept, else the error that comes nearest to it."""
        kept = self.used <= 1 + (_FINEST_TOLERANCE if self.finest else _TOLERANCE)
        return 1.0 if kept else self.used, self.nbytes

    @classmethod
    def new(cls, codec: SteeredCodec, mode: Mode) -> Lane:
        """Before any measurement."""
        return cls(_RANDOM if mode is Mode.AUTOQUANTZ else _NEAREST, codec.first_point(mode))

    def step(self, allowed: float) -> float:
        """Of the quantiser, in the units of the allowed error."""
        return min(self.gain * allowed, _MOST_STEP)

    def correct(self, used: dict[int, float], allowed: float, least_step: float, nbytes: int) -> None:
        """Learn what the step for an allowed error came to: errors over it, by reconstruction point, and bytes."""
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
        """All that is known, as plain values."""
        return dict(vars(self))
