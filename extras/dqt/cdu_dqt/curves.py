"""Rate and distortion of each coefficient at each step, exact, from histograms (JPEG-ACT, "DQT optimisation").

Rate is a sum over the 64 coefficients of a block, and so is the squared error: the transform is orthonormal (Parseval). An
entry of the table therefore changes only its own coefficient's rate and error.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from cdu_spec.geometry import BLOCK_VALUES, VALUE_BITS
from cdu_spec.modes import MASK_BYTES
from cdu_tools.errors import UserError
from cdu_tools.near_names import unknown
from torch import Tensor

from cdu_dqt.coefficients import COEFFICIENT_VALUES
from cdu_dqt.quantizer import ENTROPY, SHIFT, ZVC, TableQuantizer

#: Rates that are a sum over coefficients.
RATES = (ENTROPY, ZVC)


@dataclass(frozen=True)
class Measure:
    """The measure of a table: a quantiser, and the cost of a coefficient.

    ``entropy``
        Entropy of coefficient i: ``H_i = -sum_q p_i(q) log2 p_i(q)`` in bits, p_i(q) the part of all blocks in which it is
        quantised to q. It is a lower bound for codes that have one code per coefficient and code every block alike.
    ``zvc``
        The exact size that ZVC writes: ``1 + 8 P_i(q != 0)`` bits. For shifts only, which jpeg-act codes in this way.

    UserError for another rate, and for ``zvc`` with divisors.
    """

    quantizer: TableQuantizer
    rate: str = ENTROPY

    def __post_init__(self) -> None:
        if self.rate not in RATES:
            raise UserError(unknown("rate", self.rate, RATES))
        if self.rate == ZVC and self.quantizer.kind != SHIFT:
            raise UserError("rate 'zvc' goes with kind 'shift': jpeg-base, which divides, writes no ZVC; use rate 'entropy'")

    def __call__(self, histogram: Tensor, rungs: Tensor) -> tuple[Tensor, Tensor]:
        """Rate and distortion of each coefficient with its own step.

        Parameters
        ----------
        histogram
            float64 (64, 4096), see :func:`cdu_dqt.coefficients.histogram`.
        rungs
            int64 (64,).

        Returns
        -------
        float64 (64,) each: bits per coefficient, and mean squared error in the units of SFPR's integers.
        """
        seen = histogram.any(0)
        values, counts = COEFFICIENT_VALUES[seen], histogram[:, seen]
        blocks = counts.sum(1)
        codes, restored = self.quantizer.quantize(values[None], rungs[:, None])
        distortion = (counts * (restored.to(torch.float64) - values).square()).sum(1) / blocks
        if self.rate == ZVC:
            nonzero = (counts * codes.ne(0)).sum(1) / blocks
            return MASK_BYTES * 8 / BLOCK_VALUES + VALUE_BITS * nonzero, distortion
        places = codes.to(torch.int64) - int(codes.min())
        of_codes = counts.new_zeros(BLOCK_VALUES, int(places.max()) + 1).scatter_add_(1, places, counts)
        return entropy(of_codes), distortion


def entropy(counts: Tensor) -> Tensor:
    """Return the entropy in bits of each row of counts, float64 (rows, symbols)."""
    parts = counts / counts.sum(1, keepdim=True)
    return -torch.xlogy(parts, parts).sum(1) / torch.log(torch.tensor(2.0, dtype=torch.float64))


@dataclass(frozen=True, eq=False)
class Curves:
    """Rate and distortion of every coefficient at every rung, float64 (64, rungs) each."""

    quantizer: TableQuantizer
    rate: Tensor  #: bits per coefficient
    distortion: Tensor  #: mean squared error

    @classmethod
    def of(cls, histogram: Tensor, measure: Measure) -> Curves:
        """Return the curves of a histogram."""
        ladder = range(len(measure.quantizer.steps))
        points = [measure(histogram, torch.full((BLOCK_VALUES,), rung)) for rung in ladder]
        rates, distortions = zip(*points, strict=True)
        return cls(measure.quantizer, torch.stack(rates, 1), torch.stack(distortions, 1))

    def cost(self, alpha: float) -> Tensor:
        """Return ``(1 - alpha) * rate + alpha * distortion``, float64 (64, rungs); its mean over a table is the objective.

        UserError for an alpha outside 0..1.
        """
        check_alpha(alpha)
        return (1 - alpha) * self.rate + alpha * self.distortion

    def at(self, rungs: Tensor) -> tuple[float, float]:
        """Return bits per coefficient and mean squared error per value of a table, the means over its entries."""
        rows = torch.arange(BLOCK_VALUES)
        return float(self.rate[rows, rungs].mean()), float(self.distortion[rows, rungs].mean())

    def objective(self, rungs: Tensor, alpha: float) -> float:
        """Return the objective, which optimisation minimises, of rungs (64,)."""
        rate, distortion = self.at(rungs)
        return (1 - alpha) * rate + alpha * distortion


def check_alpha(alpha: float) -> None:
    """Raise UserError for an alpha outside 0..1."""
    if not 0 <= alpha <= 1:
        raise UserError(f"alpha = {alpha:g} is not allowed: use a number from 0 (only rate) to 1 (only error)")
