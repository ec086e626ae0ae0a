"""Two optimisers for the 64 entries: exact search, and the finite-difference SGD of the paper.

The objective is ``(1 - alpha) * rate + alpha * error``, both of :mod:`cdu_dqt.curves`, as a mean over the 64
coefficients. The DC entry stays 8.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from cdu_spec.dqt import DC_DIVISOR
from cdu_spec.geometry import BLOCK_VALUES
from cdu_tools.errors import UserError
from torch import Tensor

from cdu_dqt.coefficients import histogram
from cdu_dqt.curves import Curves, Measure, check_alpha

SEARCH, SGD = "search", "sgd"
OPTIMIZERS = (SEARCH, SGD)


def search(curves: Curves, alpha: float) -> Tensor:
    """Return the rungs with the least objective, int64 (64,): no table has a lower one, because entries are independent.

    Among equals the smaller step is chosen. UserError for an alpha outside 0..1.
    """
    rungs = curves.cost(alpha).argmin(1)
    rungs[0] = curves.quantizer.dc_rung
    return rungs


@dataclass(frozen=True)
class Sgd:
    """Stochastic gradient descent on the logarithms of the steps, with gradients by finite differences.

    The paper gives neither rates nor batches. With logarithms one learning rate serves every alpha: the curvature of an
    entry's objective at its least is then about ``2 * (1 - alpha) * ln 2`` whatever the step.

    Parameters
    ----------
    steps
        Number of updates.
    batch
        Number of blocks, drawn anew for each update, on which rate and error are measured.
    learning_rate
        Initial rate, in octaves per unit of gradient; it falls to zero linearly.
    seed
        Seed of the draws.
    """

    steps: int = 300
    batch: int = 2048
    learning_rate: float = 0.5
    seed: int = 0

    def __post_init__(self) -> None:
        if self.steps < 1 or self.batch < 1 or not self.learning_rate > 0:
            raise UserError(
                f"SGD with {self.steps} steps of {self.batch} blocks at rate {self.learning_rate:g} is not allowed: use more"
            )

    def __call__(
        self, coefficients: Tensor, measure: Measure, alpha: float, on_step: Callable[[], None] = lambda: None
    ) -> Tensor:
        """Return rungs, int64 (64,), for coefficients, int16 (blocks, 64), starting with 8 in all entries."""
        check_alpha(alpha)
        ladder = torch.tensor(measure.quantizer.steps, dtype=torch.float64).log2()
        draw = torch.Generator().manual_seed(self.seed)
        octaves = torch.full((BLOCK_VALUES,), float(DC_DIVISOR), dtype=torch.float64).log2()
        for step in range(self.steps):
            chosen = torch.randint(len(coefficients), (self.batch,), generator=draw)
            slope = gradient(histogram(coefficients[chosen]), measure, nearest(ladder, octaves), alpha)
            octaves[1:] -= self.learning_rate * (1 - step / self.steps) * slope[1:]
            octaves.clamp_(ladder[0], ladder[-1])
            on_step()
        return nearest(ladder, octaves)


def nearest(ladder: Tensor, octaves: Tensor) -> Tensor:
    """Return the rungs of an ascending ladder (rungs,) nearest to values (n,), int64 (n,)."""
    return (octaves[:, None] - ladder).abs().argmin(1)


def gradient(counts: Tensor, measure: Measure, rungs: Tensor, alpha: float) -> Tensor:
    """Return the slope of each coefficient's objective, per octave of its step, float64 (64,).

    The slope is the difference between the next coarser and the next finer step, one-sided at the ends of the ladder, divided
    by their distance. Entries are independent, so that two measurements give all 64 slopes.
    """
    ladder = torch.tensor(measure.quantizer.steps, dtype=torch.float64).log2()
    coarser, finer = (rungs + 1).clamp(max=len(ladder) - 1), (rungs - 1).clamp(min=0)
    above, below = ((1 - alpha) * rate + alpha * error for rate, error in (measure(counts, coarser), measure(counts, finer)))
    return (above - below) / (ladder[coarser] - ladder[finer])
