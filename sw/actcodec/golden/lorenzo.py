"""Lorenzo prediction of integers (Ibarria et al. 2003; cuSZ's "dual quantisation" makes it exact and parallel).

The prediction of a value follows by inclusion and exclusion from its neighbours with smaller indices: ``a`` on a line;
``left + above - corner`` on a plane; seven neighbours in a volume. The residuals are differences along one axis after another;
sums along the axes undo them. Both are exact, because the values were quantised before: no reconstructed value enters a
prediction.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from actcodec.golden.checks import require
from actcodec.golden.integer_coder import estimated_bits

#: Greatest number of axes that predict.
MAX_DIMENSIONS = 3
#: Values of at most this magnitude have differences that fit 32 bits, whatever the axes.
MAX_MAGNITUDE = 1 << (30 - MAX_DIMENSIONS)


def prediction_axes(rank: int, dimensions: int) -> range:
    """Return the axes that predict in a tensor: the last ones, but never the first of several, which counts the samples."""
    return range(rank - min(dimensions, max(rank - 1, 1)), rank)


def differences(values: Tensor, dimensions: int) -> Tensor:
    """Return the residuals of prediction, int32; values outside the tensor count as 0.

    Parameters
    ----------
    values
        int32, magnitudes up to :data:`MAX_MAGNITUDE`, any shape.
    dimensions
        Number of axes that predict, 0 to 3, selected by :func:`prediction_axes`.
    """
    require("values", values, (torch.int32,))
    left = values.clone()
    for axis in prediction_axes(values.ndim, dimensions):
        following = left.narrow(axis, 1, left.shape[axis] - 1)
        following -= left.narrow(axis, 0, left.shape[axis] - 1).clone()
    return left


def sums(left: Tensor, dimensions: int) -> Tensor:
    """Return the values with the given :func:`differences`, int32."""
    require("left", left, (torch.int32,))
    for axis in prediction_axes(left.ndim, dimensions):
        left = left.cumsum(axis, dtype=torch.int32)
    return left


def cheapest_dimensions(sample: Tensor, estimate: Callable[[Tensor], float] = estimated_bits) -> int:
    """Return the number of dimensions whose differences of these values, int32, take the fewest bits by an estimate."""
    most = len(prediction_axes(sample.ndim, MAX_DIMENSIONS))
    return min(range(most + 1), key=lambda dimensions: estimate(differences(sample, dimensions)))
