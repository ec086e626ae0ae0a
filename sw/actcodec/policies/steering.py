"""How the registers of a unit follow an allowed error: one mode of one tensor, by what was measured in earlier steps.

A *gain* is the step of a quantiser in units of the error (RMS) that is allowed. It is the same for all magnitudes, so that it
stays right while gradients, and what they allow, grow or shrink. It begins as for errors that are uniform over a step, and each
measurement corrects it. Errors grow as steps do while these are fine, and more slowly when little is left of the values: how
much more slowly the last two measurements say.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log, sqrt
from sys import float_info
from typing import Any

import torch
from cdu_spec.bitstream import Mode
from torch import Tensor

from actcodec.codecs.acgc.steered_codec import Setting, SteeredCodec

#: Step per RMS error where errors are uniform: rounding to nearest, and at random.
_NEAREST, _RANDOM = sqrt(12), sqrt(6)
#: With a gain of 1 no value is off by more than about what is allowed: what is then off more is so for want of bits.
_LEAST_GAIN = 1.0
#: Steps beyond which everything is zero, in units of the largest magnitude: coefficients are up to 8 times as large.
_MOST_STEP = 16.0
#: Most that one measurement changes a gain, up or down.
_MOST_CHANGE = 4.0
#: Least growth of errors that is believed, and least distance of the logarithms of two steps that says something of it.
_LEAST_GROWTH, _APART = 0.3, 0.05
#: What an error may be beyond the allowed one and still count as kept.
TOLERANCE = 0.05


@dataclass
class Lane:
    """What is known of a tensor in one mode."""

    gain: Tensor  #: float64 (n,), CPU: n is 1 or the number of scales
    point: int  #: reconstruction point in eighths
    growth: float = 1.0  #: of errors with steps, logarithm by logarithm
    at: tuple[float, float] | None = None  #: logarithms of step and error of the last measurement
    used: float | None = None  #: last measured error over the allowed one, root mean square
    nbytes: int = 0  #: that it then took

    @classmethod
    def new(cls, codec: SteeredCodec, mode: Mode, bounds: int) -> Lane:
        """Before any measurement."""
        gain = _RANDOM if mode is Mode.AUTOQUANTZ else _NEAREST
        return cls(torch.full((bounds,), gain, dtype=torch.float64), codec.first_point(mode))

    def setting(self, codec: SteeredCodec, mode: Mode, allowed: Tensor, reach: Tensor) -> Setting:
        """Registers for an allowed error, float64 (n,), of magnitudes up to ``reach``, float64 (scales,)."""
        return codec.setting(mode, (self.gain * allowed).minimum(_MOST_STEP * reach.amax()), reach, self.point)

    def correct(self, found: dict[int, Tensor], allowed: Tensor, nbytes: int) -> None:
        """Learn the errors, float64 (n,) by reconstruction point, that the setting made of these numbers came to."""
        uses = {point: rms(error / allowed) for point, error in found.items()}
        self.used, self.nbytes = uses[self.point], nbytes
        self.point = min(uses, key=uses.__getitem__)
        error = found[self.point]
        self._learn_growth(log(rms(self.gain * allowed)), log(max(rms(error), float_info.min)))
        change = (allowed / error).pow(1 / self.growth).clamp(1 / _MOST_CHANGE, _MOST_CHANGE)
        self.gain = (self.gain * change).clamp_min(_LEAST_GAIN)

    def _learn_growth(self, step: float, error: float) -> None:
        if self.at is not None and abs(step - self.at[0]) > _APART:
            self.growth = min(max((error - self.at[1]) / (step - self.at[0]), _LEAST_GROWTH), 1.0)
        self.at = step, error

    def state_dict(self) -> dict[str, Any]:
        """All that is known, as plain values and tensors."""
        return dict(vars(self))


def best(lanes: dict[str, Lane]) -> str:
    """The name of the lane that took the fewest bytes of those that keep the error, or of those that come nearest to it."""

    def cost(name: str) -> tuple[float, int]:
        lane = lanes[name]
        assert lane.used is not None, "only what was measured is compared"
        return max(lane.used, 1 + TOLERANCE), lane.nbytes

    return min(lanes, key=cost)


def rms(numbers: Tensor) -> float:
    """Root mean square."""
    return float(numbers.square().mean().sqrt())
