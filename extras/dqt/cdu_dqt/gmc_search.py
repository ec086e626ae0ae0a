"""Tables of shifts for GMC: a descent, entry by entry, on the exact lengths of some blocks.

The length of a block is no sum over its coefficients: four of them share a class, and classes are the contexts of those
beside them. Therefore no histogram gives it, and the best entry depends on the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import cycle

import torch
from actcodec.golden import gmc
from cdu_spec.bitstream import COEFFICIENT_ORDER
from cdu_spec.geometry import BLOCK_VALUES
from torch import Tensor

from cdu_dqt.coefficients import histogram
from cdu_dqt.curves import Curves, Measure, check_alpha
from cdu_dqt.quantizer import TableQuantizer

#: Number of blocks on which a table is searched, at equal distances among all.
SAMPLE_BLOCKS = 1 << 13


@dataclass(frozen=True, eq=False)
class GmcBlocks:
    """Some blocks, with their lengths and errors for any table of shifts."""

    quantizer: TableQuantizer
    coefficients: Tensor  #: int16 (blocks, 64), in row order
    curves: Curves  #: curves of these blocks; the errors are those of every table, the rate is the entropy of each coefficient

    @classmethod
    def of(cls, coefficients: Tensor, quantizer: TableQuantizer, most: int = SAMPLE_BLOCKS) -> GmcBlocks:
        """Return at most ``most`` of the blocks of coefficients, int16 (blocks, 64), with a quantiser of kind ``shift``."""
        count = min(len(coefficients), most)
        chosen = coefficients[torch.arange(count) * len(coefficients) // count]
        return cls(quantizer, chosen, Curves.of(histogram(chosen), Measure(quantizer)))

    def codes(self, rungs: Tensor) -> Tensor:
        """Return the codes of a table that GMC encodes, int8 (blocks, 64), in row order."""
        return self.quantizer.quantize(self.coefficients, rungs)[0].to(torch.int8)

    def column(self, entry: int, rung: int) -> Tensor:
        """Return the codes of one coefficient, int8 (blocks,)."""
        return self.quantizer.quantize(self.coefficients[:, entry], torch.tensor(rung))[0].to(torch.int8)

    def at(self, rungs: Tensor) -> tuple[float, float]:
        """Return bits per coefficient and mean squared error per value of a table, given by its rungs (64,)."""
        return self._bits(int(gmc_lengths(self.codes(rungs)).sum())), self.curves.at(rungs)[1]

    def objective(self, rungs: Tensor, alpha: float) -> float:
        """Return the objective, which optimisation minimises, of rungs (64,)."""
        rate, distortion = self.at(rungs)
        return (1 - alpha) * rate + alpha * distortion

    def objective_of(self, size: int, rungs: Tensor, alpha: float) -> float:
        """Return the objective when ``size``, the bytes of all blocks, is known."""
        return (1 - alpha) * self._bits(size) + alpha * self.curves.at(rungs)[1]

    def _bits(self, size: int) -> float:
        return 8 * size / self.coefficients.numel()


def gmc_lengths(codes: Tensor) -> Tensor:
    """Return the bytes of GMC of each block, int64 (blocks,), for codes -128 to 127, integers (blocks, 64), in row order."""
    return gmc.encode(codes[:, list(COEFFICIENT_ORDER)].to(torch.int8))[1]


def descend(blocks: GmcBlocks, alpha: float, starts: Sequence[Tensor]) -> Tensor:
    """Return rungs, int64 (64,), none of whose entries improves one rung up or down, starting from the best of some tables.

    Entries are tried in turn, coarser before finer, for as long as one of them moves. DC is divided by 8 at least. Among equals
    the table found first is kept. UserError for an alpha outside 0..1.
    """
    check_alpha(alpha)
    least = [0] * BLOCK_VALUES
    least[0] = blocks.quantizer.dc_rung
    rungs = min(starts, key=lambda one: blocks.objective(one, alpha)).clone()
    codes = blocks.codes(rungs)
    size = int(gmc_lengths(codes).sum())
    best = blocks.objective_of(size, rungs, alpha)
    last, still, entries = len(blocks.quantizer.steps) - 1, 0, cycle(range(BLOCK_VALUES))
    while still < BLOCK_VALUES:
        entry = next(entries)
        still += 1
        for direction in (1, -1):
            while least[entry] <= rungs[entry] + direction <= last:
                trial = rungs.clone()
                trial[entry] += direction
                column = blocks.column(entry, int(trial[entry]))
                # A block with an unchanged coefficient keeps its code.
                changed = column != codes[:, entry]
                before, after = codes[changed], codes[changed]
                after[:, entry] = column[changed]
                found = size + int(gmc_lengths(after).sum() - gmc_lengths(before).sum())
                objective = blocks.objective_of(found, trial, alpha)
                if objective >= best:
                    break
                rungs, size, best, still = trial, found, objective, 0
                codes[:, entry] = column
    return rungs
