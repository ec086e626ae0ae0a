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

Normalisations are in :mod:`actcodec.policies.norm_bounds`, functions of single values in
:mod:`actcodec.policies.pointwise_bounds`.
All of these hold for errors of any distribution that are spread evenly over the values, with dx as root mean square. Where the
errors of values are independent of one another and have mean zero (stochastic rounding), those of n values whose products with
G are added up grow by sqrt(n) instead of n, and dx may be larger by that: what ``independent`` stands for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

#: e**2, by which part the variance of the gradient may grow (paper).
VARIANCE_GROWTH = 0.5
#: k of the paper; one of two public code bases has 2 for convolutions.
PRODUCT_CONSTANT = 0.5
#: No error is asked to be smaller.
LEAST_ERROR = 2.0**-16
#: No error is allowed to be larger: what is left of "infinite" where no gradient comes back.
MOST_ERROR = 2.0**60


@dataclass(frozen=True, eq=False)
class Demand:
    """What a layer asks of a tensor that it reads: ``dx**2 = e**2 * variance / weight``, but no more than ``limit``."""

    variance: Tensor  #: V**2, float64 ()
    weight: Tensor  #: squared error of the gradient per squared error of a value, at most; float64 (1,), or (C,) by channel
    limit: Tensor  #: like weight; larger errors have other effects than the formula knows

    @property
    def finite(self) -> bool:
        """Whether it can be learnt from: no infinite gradient (loss scaling), and not everything zero."""
        return bool(self.variance.isfinite() & self.weight.isfinite().all() & (self.variance + self.weight.sum() > 0))

    def cpu(self) -> Demand:
        """The same there."""
        return Demand(self.variance.cpu(), self.weight.cpu(), self.limit.cpu())


def product_demand(
    gradient: Tensor,
    weight_gradient: Tensor,
    values: int,
    reach: float = 1.0,
    constant: float = PRODUCT_CONSTANT,
    averaged: int = 1,
) -> Demand:
    """Of a layer whose weight's gradient is a sum of products of saved values and G: linear, convolution.

    Parameters
    ----------
    gradient, weight_gradient
        G and dW, any shape; the norm of either does.
    values
        Of the saved tensor: N * C, or M * C.
    reach
        Outputs of one channel that read a value, on average: 1, or :func:`convolution_reach`.
    constant
        k of the module's table, positive.
    averaged
        1; for independent errors, the number of products that are added up for one weight (rows, or places of the output).
    """
    weight = values * reach * squared_norm(gradient) / (constant * averaged)
    # A sum of products: what an error adds is proportional to it, however large it is.
    return Demand(squared_norm(weight_gradient), weight.view(1), weight.new_full((1,), torch.inf))


def convolution_reach(kernel: Sequence[int], stride: Sequence[int], groups: int = 1) -> float:
    """``R * S / T**2``, for any number of axes; a value is read by the channels of its own group only."""
    reach = 1.0 / groups
    for extent, step in zip(kernel, stride, strict=True):
        reach *= extent / step
    return reach


def factor_demand(gradient: Tensor, other_gradient: Tensor, inner: int, *, independent: bool = False) -> Demand:
    """Of a product of two activations, matrices or values, for one of them; its error is in the gradient of the other one.

    Parameters
    ----------
    gradient
        G, at the product, any shape.
    other_gradient
        Of the other factor, any shape.
    inner
        Products that add up in a value of the result: k of an (n, k) times a (k, m) matrix, 1 of an elementwise product.
    independent
        Whether the errors of values are.
    """
    terms = max(inner * gradient.numel() // other_gradient.numel(), 1)
    return product_demand(gradient, other_gradient, inner * terms, constant=1.0, averaged=terms if independent else 1)


def together(demands: Sequence[Demand]) -> Demand:
    """Of several layers of one kind that read one tensor: errors and variances add up (paper: several convolutions).

    Layers that see the same values in different channels (one of them reads a view) ask something of all values together.
    """
    if len({demand.weight.numel() for demand in demands}) > 1:
        demands = [replace(one, weight=one.weight.amax().view(1), limit=one.limit.amin().view(1)) for one in demands]
    variances, weights, limits = zip(*((demand.variance, demand.weight, demand.limit) for demand in demands), strict=True)
    return Demand(torch.stack(variances).sum(), torch.stack(weights).sum(0), torch.stack(limits).amin(0))


def mean_demand(demands: Sequence[Demand]) -> Demand:
    """Of one layer, from several steps."""
    total = together(demands)
    return Demand(total.variance / len(demands), total.weight / len(demands), total.limit)


def largest_error(demand: Demand, variance_growth: float = VARIANCE_GROWTH) -> Tensor:
    """dx, float32 (1,) or (C,), from 2**-16 (the paper's code) to 2**60; ``variance_growth`` is e**2, positive."""
    squared = torch.where(demand.weight > 0, variance_growth * demand.variance / demand.weight, torch.inf)
    return squared.sqrt().minimum(demand.limit).clamp(LEAST_ERROR, MOST_ERROR).to(torch.float32)


def squared_norm(x: Tensor) -> Tensor:
    """The sum of squares, float64 ()."""
    return x.detach().to(torch.float64).square().sum()
