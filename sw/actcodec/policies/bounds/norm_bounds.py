"""Compute AC-GC's error bounds for inputs of normalisations; terms as in :mod:`actcodec.policies.bounds.scalar_bounds`.

===============  =======================================================================================================
batch norm       ``dx**2 = e**2 * ||dX||**2 * M * sigma**4 / (C * gamma**2 * g**2)`` for each channel,
                 ``g**2 = dgamma**2 + sigma**-2 * nnz(G)**2 * max|G|**2 * (max|x| / 2)**2``
layer norm,      ``dx**2 = e**2 * ||dX||**2 / (2 * sum over rows of (s**2 / D + ||h||**2) / sigma**4)``, with ``h = gamma * G``
group norm,      and ``s = sum of h * normalised x``; a row is what is normalised together, D values. Not in the paper, derived
RMS norm         in docs/methods/acgc.md; sigma of RMS norm is the root mean square
===============  =======================================================================================================

The gradient of a normalisation has a term that is quadratic in the error, so that there dx is no more than sigma besides.
"""

from __future__ import annotations

import torch
from torch import Tensor

from actcodec.policies.bounds.scalar_bounds import Demand


def batch_norm_demand(
    gradient: Tensor,
    input_gradient: Tensor,
    sigma: Tensor,
    gamma: Tensor,
    largest: Tensor,
    *,
    independent: bool = False,
) -> Demand:
    """Return the demand of a batch normalisation in training, by channel.

    Parameters
    ----------
    gradient, input_gradient
        G and dX, (N, C, ...).
    sigma, gamma, largest
        (C,): the standard deviation used as divisor (with epsilon), the factor, and ``max|x|``.
    independent
        True if the errors of values are independent; then ``2 * (dgamma**2 + ||G||**2)`` replaces ``g**2``.
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
    """Return the demand of a layer normalisation, with one error for the whole tensor.

    Parameters
    ----------
    gradient, input_gradient
        G and dX, (..., D); the axes that are normalised together count as the last one.
    sigma
        Standard deviation of each row used as divisor (with epsilon), (rows,).
    gamma
        Factor, (D,).
    independent
        True if the errors of values are independent; then ``||h||**2`` is divided by D.
    """
    h = gradient.detach().to(torch.float64).reshape(-1, gamma.numel()) * gamma.to(torch.float64)
    return _row_demand(h, input_gradient, sigma, independent=independent)


def group_norm_demand(
    gradient: Tensor, input_gradient: Tensor, sigma: Tensor, gamma: Tensor, *, independent: bool = False
) -> Demand:
    """Return the demand of a group or instance normalisation (groups of one channel), with one error for the whole tensor.

    Parameters
    ----------
    gradient, input_gradient
        G and dX, (N, C, ...).
    sigma
        Standard deviation of each group of channels of each sample used as divisor (with epsilon), (N * groups,).
    gamma
        Factor, (C,).
    independent
        As in :func:`layer_norm_demand`.
    """
    h = gradient.detach().to(torch.float64).reshape(*gradient.shape[:2], -1) * gamma.to(torch.float64)[:, None]
    return _row_demand(h.reshape(sigma.numel(), -1), input_gradient, sigma, independent=independent)


def rms_norm_demand(
    gradient: Tensor, input_gradient: Tensor, sigma: Tensor, gamma: Tensor, *, independent: bool = False
) -> Demand:
    """Return the demand of a normalisation by the root mean square ``sigma``; otherwise as :func:`layer_norm_demand`."""
    h = gradient.detach().to(torch.float64).reshape(-1, gamma.numel()) * gamma.to(torch.float64)
    return _row_demand(h, input_gradient, sigma, independent=independent, centred=False)


def _row_demand(h: Tensor, input_gradient: Tensor, sigma: Tensor, *, independent: bool, centred: bool = True) -> Demand:
    """Return the demand of normalised rows: h float64 (rows, D), dX of any shape with these rows, sigma (rows,)."""
    size = h.shape[1]
    dx = input_gradient.detach().to(torch.float64).reshape(h.shape)
    sigma = sigma.to(torch.float64)
    along = _along_input(h, dx, sigma, centred=centred) / size
    across = h.square().sum(1) / (size if independent else 1)
    return Demand(dx.square().sum(), 2 * ((along + across) / sigma**4).sum().view(1), sigma.amin().view(1))


def _by_channel(x: Tensor) -> Tensor:
    """Reshape (N, C, ...) to float64 (C, M)."""
    return x.detach().to(torch.float64).transpose(0, 1).flatten(1)


def _along_input(h: Tensor, dx: Tensor, sigma: Tensor, *, centred: bool = True) -> Tensor:
    """Return ``(sum of h * normalised x)**2`` of normalised rows, float64 (rows,), computed without x.

    ``dx = (h - mean(h) - y * mean(h * y)) / sigma``, with y the normalised x, is the rest of h after its parts along the
    vector of ones and along y, which have the squared norm n and are orthogonal, are removed (Pythagoras). Without
    ``centred`` the mean is not removed. Epsilon makes y shorter and the value returned here larger than the exact one.
    """
    size = h.shape[1]
    left = h.square().sum(1) - (sigma[:, None] * dx).square().sum(1)
    if centred:
        left -= h.sum(1).square() / size
    return (size * left).clamp_min(0)
