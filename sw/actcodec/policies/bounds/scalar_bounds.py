"""AC-GC's error bounds: how large the error of a saved activation may be (Evans, Aamodt, NeurIPS 2021; docs/methods/acgc.md).

The variance of a stochastic gradient is at most V**2; with compressed activations it may grow to ``(1 + e**2) * V**2``. So the
squared error that compression adds to a gradient may be ``e**2 * V**2``, V**2 being estimated by the squared norm of the
gradient itself. G is the gradient at a layer's output, M the number of values of a channel (N * H * W), T the stride, R x S the
kernel, C the number of channels. The largest error dx of an activation is

===============  =======================================================================================================
linear           ``dx**2 = k * e**2 * ||dW||**2 / (N * C * ||G||**2)``, k = 1/2
convolution      ``dx**2 = k * e**2 * ||dW||**2 * T**2 / (R * S * M * C * ||G||**2)``, k = 1/2; in public code also 2
product          ``dx**2 = e**2 * ||dB||**2 / (k * S * ||G||**2)`` for A in A B, activations both; k products add up in a value
                 of A B, S in one of dB; not in the paper, derived in docs/methods/acgc.md
===============  =======================================================================================================

Normalisations are in :mod:`actcodec.policies.bounds.norm_bounds`, functions of single values in
:mod:`actcodec.policies.bounds.pointwise_bounds`.
All of these hold for errors of any distribution that are spread evenly over the values, with dx as root mean square. Where the
errors of values are independent of one another and have mean zero (stochastic rounding), those of n values whose products with
G are added up grow by sqrt(n) instead of n, and dx may be larger by this factor (``independent``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

#: e**2, the relative growth allowed to the variance of the gradient (paper).
VARIANCE_GROWTH = 0.5
#: k of the paper; one of its two public code bases uses 2 for convolutions.
PRODUCT_CONSTANT = 0.5
#: Smallest error that a layer may demand.
LEAST_ERROR = 2.0**-16
#: Largest error that is allowed; it replaces infinity where no gradient comes back.
MOST_ERROR = 2.0**60


@dataclass(frozen=True, eq=False)
class Demand:
    """The demand of a layer on a tensor that it reads: ``dx**2 = e**2 * variance / weight``, at most ``limit**2``."""

    variance: Tensor  #: V**2, float64 ()
    weight: Tensor  #: squared error of the gradient per squared error of a value, at most; float64 (1,), or (C,) by channel
    limit: Tensor  #: like weight; beyond this error the formula does not hold

    @property
    def finite(self) -> bool:
        """Return whether the demand is usable: no infinite gradient (loss scaling), and not zero throughout."""
        return bool(self.variance.isfinite() & self.weight.isfinite().all() & (self.variance + self.weight.sum() > 0))

    def cpu(self) -> Demand:
        """Return the demand with all tensors on the CPU."""
        return Demand(self.variance.cpu(), self.weight.cpu(), self.limit.cpu())


def product_demand(
    gradient: Tensor,
    weight_gradient: Tensor,
    values: int,
    reach: float = 1.0,
    constant: float = PRODUCT_CONSTANT,
    averaged: int = 1,
) -> Demand:
    """Return the demand of a linear or convolution layer, whose weight gradient is a sum of products of saved values and G.

    Parameters
    ----------
    gradient, weight_gradient
        G and dW, any shape; only their norms matter.
    values
        Number of values of the saved tensor: N * C, or M * C.
    reach
        Outputs of one channel that read a value, on average: 1, or :func:`convolution_reach`.
    constant
        k of the module's table, positive.
    averaged
        1; for independent errors, the number of products that are summed for one weight (rows, or positions of the output).
    """
    weight = values * reach * squared_norm(gradient) / (constant * averaged)
    # The weight gradient is a sum of products, so that an error of any size adds to it in proportion.
    return Demand(squared_norm(weight_gradient), weight.view(1), weight.new_full((1,), torch.inf))


def convolution_reach(kernel: Sequence[int], stride: Sequence[int], groups: int = 1) -> float:
    """Return ``R * S / T**2``, for any number of axes; only the channels of a value's own group read it."""
    reach = 1.0 / groups
    for extent, step in zip(kernel, stride, strict=True):
        reach *= extent / step
    return reach


def factor_demand(gradient: Tensor, other_gradient: Tensor, inner: int, *, independent: bool = False) -> Demand:
    """Return the demand on one factor of a product of two activations, whose error enters the gradient of the other factor.

    Parameters
    ----------
    gradient
        G at the product, any shape.
    other_gradient
        Gradient of the other factor, any shape.
    inner
        Number of products summed in one value of the result: k for (n, k) times (k, m), 1 for an elementwise product.
    independent
        True if the errors of values are independent with mean zero.
    """
    terms = max(inner * gradient.numel() // other_gradient.numel(), 1)
    return product_demand(gradient, other_gradient, inner * terms, constant=1.0, averaged=terms if independent else 1)


def together(demands: Sequence[Demand]) -> Demand:
    """Combine the demands of several layers of one kind that read one tensor: errors and variances add (paper: convolutions).

    If layers see the same values in different channels (one of them reads a view), the result has one weight for all values.
    """
    if len({demand.weight.numel() for demand in demands}) > 1:
        demands = [replace(one, weight=one.weight.amax().view(1), limit=one.limit.amin().view(1)) for one in demands]
    variances, weights, limits = zip(*((demand.variance, demand.weight, demand.limit) for demand in demands), strict=True)
    return Demand(torch.stack(variances).sum(), torch.stack(weights).sum(0), torch.stack(limits).amin(0))


def mean_demand(demands: Sequence[Demand]) -> Demand:
    """Return the mean of one layer's demands from several steps."""
    total = together(demands)
    return Demand(total.variance / len(demands), total.weight / len(demands), total.limit)


def largest_error(demand: Demand, variance_growth: float = VARIANCE_GROWTH) -> Tensor:
    """Return dx, float32 (1,) or (C,), from 2**-16 (the paper's code) to 2**60; ``variance_growth`` is e**2, positive."""
    squared = torch.where(demand.weight > 0, variance_growth * demand.variance / demand.weight, torch.inf)
    return squared.sqrt().minimum(demand.limit).clamp(LEAST_ERROR, MOST_ERROR).to(torch.float32)


def squared_norm(x: Tensor) -> Tensor:
    """Return the sum of squares, float64 ()."""
    return x.detach().to(torch.float64).square().sum()
