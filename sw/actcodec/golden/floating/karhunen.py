"""Karhunen-Loeve transform of rows of features: components without correlation, made of some of the rows.

The rows a transform is made of are one of each :data:`EVERY`. Its place among them follows multiples of the golden ratio, so
that a period of the rows (positions of a text) is no period of the sample.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

#: One row of so many is in the sample.
EVERY = 16
#: The golden ratio less one in 16 bits, and how far products are shifted to places among :data:`EVERY`.
_GOLDEN, _BITS, _SHIFT = 40503, (1 << 16) - 1, 12
#: Squared error, in squares of the step, that one bit of a uniform quantiser saves where steps are narrow beside the values.
SQUARE_OF_A_BIT = 2 * math.log(2) / 12


def sampled(rows: Tensor) -> Tensor:
    """Return the sample of rows (n, features), (ceil(n / EVERY), features)."""
    groups = torch.arange(-(-len(rows) // EVERY), device=rows.device)
    places = (groups * _GOLDEN & _BITS) >> _SHIFT
    return rows[(groups * EVERY + places).clamp_max(len(rows) - 1)]


def components(sample: Tensor) -> tuple[Tensor, Tensor]:
    """Return the variances of the components, greatest first, float64 (count,), and their directions as columns.

    There are as many components as features, or as rows if these are fewer: the others have no variance. The greatest entry
    of a direction, the first one of equals, is positive.

    Parameters
    ----------
    sample
        Finite floats (rows, features), whose mean counts as zero.
    """
    exact = sample.to(torch.float64)
    if len(exact) < exact.shape[1]:
        # Rows have fewer products with each other than features have, and the same variances.
        variances, places = torch.linalg.eigh(exact @ exact.t() / len(exact))
        lengths = (variances.clamp_min(torch.finfo(torch.float64).tiny) * len(exact)).sqrt()
        directions = exact.t() @ places / lengths
    else:
        variances, directions = torch.linalg.eigh(exact.t() @ exact / len(exact))
    variances, directions = variances.flip(0).clamp_min_(0), directions.flip(1)
    greatest = directions.gather(0, directions.abs().argmax(0, keepdim=True))
    return variances, directions * torch.where(greatest < 0, -1.0, 1.0)


#: Weight of what is cut beside what steps leave. An error that steps leave differs from row to row and averages out in the
#: gradient of a weight; what is cut is missing in all rows. Measured by benchmarks/klt.py: weights of 2 to 4 differ little.
WEIGHT_OF_CUT = 4


def rank_that_pays(variances: Tensor, step: float, rows: int, direction_bits: int) -> int:
    """Return the number of components that save more squared error than their bits would save elsewhere.

    What they save counts :data:`WEIGHT_OF_CUT` times.

    Parameters
    ----------
    variances
        Of the components, greatest first.
    step
        Width of a step, the same for all components (reverse water-filling).
    rows
        Rows that share the transform.
    direction_bits
        Bits of a component's direction.
    """
    squares = variances / step**2
    saved = WEIGHT_OF_CUT * rows * (squares - 1 / 12)
    bits = direction_bits + rows * (1 + 12 * squares).log2() / 2
    pays = saved > SQUARE_OF_A_BIT * bits
    return int(pays.to(torch.int64).cumprod(0).sum())
