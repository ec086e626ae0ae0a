"""AC-GC's error bounds: how large the error of a saved activation may be (Evans, Aamodt, NeurIPS 2021; docs/methods/acgc.md).

The variance of a stochastic gradient is at most V**2; with compressed activations it may grow to ``(1 + e**2) * V**2``. So the
squared error that compression adds to a gradient may be ``e**2 * V**2``, V**2 being estimated by the squared norm of the
gradient itself. G is the gradient at a layer's output, M the number of values of a channel (N * H * W), T the stride, R x S the
kernel, C the number of channels. The largest error dx of an activation is

===============  =======================================================================================================
linear           ``dx**2 = k * e**2 * ||dW||**2 / (N * C * ||G||**2)``, k = 1/2
convolution      ``dx**2 = k * e**2 * ||dW||**2 * T**2 / (R * S * M * C * ||G||**2)``, k = 1/2; in public code also 2
batch norm       ``dx**2 = e**2 * ||dX||**2 * M * sigma**4 / (C * gamma**2 * g**2)`` for each channel,
                 ``g**2 = dgamma**2 + sigma**-2 * nnz(G)**2 * max|G|**2 * (max|x| / 2)**2``
layer norm       ``dx**2 = e**2 * ||dX||**2 / (2 * sum over rows of (s**2 / D + ||h||**2) / sigma**4)``, with ``h = gamma * G``
                 and ``s = sum of h * normalised x``; not in the paper, derived in docs/methods/acgc.md
===============  =======================================================================================================

The gradient of a normalisation has a term that is quadratic in the error, so that there dx is no more than sigma besides.
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
    weight = values * reach * _squared(gradient) / (constant * averaged)
    # A sum of products: what an error adds is proportional to it, however large it is.
    return Demand(_squared(weight_gradient), weight.view(1), weight.new_full((1,), torch.inf))


def convolution_reach(kernel: Sequence[int], stride: Sequence[int], groups: int = 1) -> float:
    """``R * S / T**2``, for any number of axes; a value is read by the channels of its own group only."""
    reach = 1.0 / groups
    for extent, step in zip(kernel, stride, strict=True):
        reach *= extent / step
    return reach


def batch_norm_demand(
    gradient: Tensor,
    input_gradient: Tensor,
    sigma: Tensor,
    gamma: Tensor,
    largest: Tensor,
    *,
    independent: bool = False,
) -> Demand:
    """Of a batch normalisation in training, by channel.

    Parameters
    ----------
    gradient, input_gradient
        G and dX, (N, C, ...).
    sigma, gamma, largest
        (C,): standard deviation as it divides (epsilon included), factor, ``max|x|``.
    independent
        Whether the errors of values are; then ``2 * (dgamma**2 + ||G||**2)`` takes the place of ``g**2``.
    """
    channels = gradient.shape[1]
    h = _by_channel(gradient) * gamma.to(torch.float64)[:, None]
    sigma = sigma.to(torch.float64)
    dx = _by_channel(input_gradient)
    along = _along_input(h, dx, sigma)
    if independent:
        second = 2 * (along + h.square().sum(1)) - along
    else:
        nonzero = torch.count_nonzero(h, dim=1).to(torch.float64)
        second = (nonzero * h.abs().amax(1) * largest.to(torch.float64) / 2 / sigma).square()
    return Demand(dx.square().sum(), channels * (along + second) / (h.shape[1] * sigma**4), sigma)


def layer_norm_demand(
    gradient: Tensor, input_gradient: Tensor, sigma: Tensor, gamma: Tensor, *, independent: bool = False
) -> Demand:
    """Of a layer normalisation; one error for the whole tensor.

    Parameters
    ----------
    gradient, input_gradient
        G and dX, (..., D): what is normalised together counts as the last axis.
    sigma
        Standard deviation of each row as it divides (epsilon included), (rows,).
    gamma
        Factor, (D,).
    independent
        Whether the errors of values are; then ``||h||**2`` is divided by D.
    """
    size = gamma.numel()
    h = gradient.detach().to(torch.float64).reshape(-1, size) * gamma.to(torch.float64)
    dx = input_gradient.detach().to(torch.float64).reshape(-1, size)
    sigma = sigma.to(torch.float64)
    along = _along_input(h, dx, sigma) / size
    across = h.square().sum(1) / (size if independent else 1)
    return Demand(dx.square().sum(), 2 * ((along + across) / sigma**4).sum().view(1), sigma.amin().view(1))


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


def _squared(x: Tensor) -> Tensor:
    return x.detach().to(torch.float64).square().sum()


def _by_channel(x: Tensor) -> Tensor:
    """(N, C, ...) to float64 (C, M)."""
    return x.detach().to(torch.float64).transpose(0, 1).flatten(1)


def _along_input(h: Tensor, dx: Tensor, sigma: Tensor) -> Tensor:
    """``(sum of h * normalised x)**2`` of rows that are normalised, float64 (rows,), without x.

    ``dx = (h - mean(h) - y * mean(h * y)) / sigma`` with y, the normalised x, is what is left of h when its parts along the
    vector of ones and along y, which have the squared norm n and are orthogonal, are taken away (Pythagoras).
    """
    size = h.shape[1]
    left = h.square().sum(1) - h.sum(1).square() / size - (sigma[:, None] * dx).square().sum(1)
    return (size * left).clamp_min(0)
