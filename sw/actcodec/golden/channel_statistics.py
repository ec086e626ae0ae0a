"""Statistics of the channels of a tensor: extremes, mean and variance, and the error of rounding to steps.

Sums are of integers, so that every device, every backend and any number of threads computes the same: positions of values
between the least and the greatest of their channel, and squared errors, both in units far finer than their use requires. All
functions take float tensors (outer, channels, inner) of finite values.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from actcodec.golden.extremes import extremes
from actcodec.golden.formats import quotient
from actcodec.golden.pieces import piece_values

#: Binary logarithms of the numbers of units in a channel's extent, in its square, and in a squared step.
PLACE_BITS, SQUARE_BITS, ERROR_BITS = 30, 32, 32
#: Number of low bits of a square that are rounded off, so that the sum of 2**31 squares fits 64 bits.
DROPPED_BITS = 2 * PLACE_BITS - SQUARE_BITS


def channel_edges(channels: Tensor) -> tuple[Tensor, Tensor]:
    """Return the least and greatest value of each channel, float64 (channels,)."""
    first, then = (2, 0) if channels.shape[2] > 1 else (0, 1)  # the first reduction leaves a small tensor
    edges = [extremes(part, first) for part in _parts(channels)]
    least = torch.stack([part.amin(then) for part, _ in edges]).amin(0)
    return least.to(torch.float64), torch.stack([part.amax(then) for _, part in edges]).amax(0).to(torch.float64)


def channel_moments(channels: Tensor, least: Tensor, greatest: Tensor) -> tuple[Tensor, Tensor]:
    """Return the mean and variance of each channel, float64 (channels,).

    Parameters
    ----------
    channels
        See the module; up to 2**31 values per channel.
    least, greatest
        From :func:`channel_edges`.
    """
    return moments_of(*channel_sums(channels, least, greatest), channels[:, 0].numel(), least, greatest)


def channel_sums(channels: Tensor, least: Tensor, greatest: Tensor) -> tuple[Tensor, Tensor]:
    """Return the sums of positions and of their squares, int64 (channels,), as :func:`moments_of` takes them."""
    factor = place_factors(least, greatest)
    values, squares = (torch.zeros(len(least), dtype=torch.int64, device=channels.device) for _ in range(2))
    for part in _parts(channels):
        places = (part.to(torch.float64) - least[:, None]).mul_(factor[:, None]).round_().to(torch.int64)
        values += places.sum((0, 2))
        squares += places.mul_(places).add_(1 << DROPPED_BITS >> 1).bitwise_right_shift_(DROPPED_BITS).sum((0, 2))
    return values, squares


def place_factors(least: Tensor, greatest: Tensor) -> Tensor:
    """Return the factors from a distance from the least value to a position, float64; zero for channels of one value."""
    extent = greatest - least
    return torch.where(extent > 0, 2.0**PLACE_BITS / extent, 0.0)


def moments_of(values: Tensor, squares: Tensor, count: int, least: Tensor, greatest: Tensor) -> tuple[Tensor, Tensor]:
    """Return mean and variance from the sums of positions and of their squares, int64 (channels,)."""
    extent = greatest - least
    place = quotient(values.to(torch.float64), count * 2.0**PLACE_BITS)
    spread = (quotient(squares.to(torch.float64), count * 2.0**SQUARE_BITS) - place.square()).clamp_min(0)
    return least + extent * place, extent.square() * spread


def squared_errors(channels: Tensor, steps: Tensor) -> Tensor:
    """Return the sum of the squared distances of a channel's values from whole multiples of its step.

    Parameters
    ----------
    channels
        See the module.
    steps
        Positive, float64 (channels,).

    Returns
    -------
    int64 (channels,), in units of ``2**-32`` of the squared step, the error of each value rounded up.
    """
    sums = torch.zeros(len(steps), dtype=torch.int64, device=channels.device)
    for part in _parts(channels):
        exact = part.to(torch.float64) / steps[:, None]
        error = exact.sub_(exact.round())
        sums += error.square_().mul_(2.0**ERROR_BITS).ceil_().to(torch.int64).sum((0, 2))
    return sums


def _parts(channels: Tensor) -> Iterator[Tensor]:
    """Yield parts of the tensor, each with values of all channels."""
    _, count, inner = channels.shape
    most = piece_values(channels.numel(), channels.device)
    for part in torch.split(channels, max(most // (count * inner), 1)):
        yield from torch.split(part, max(most // (len(part) * count), 1), 2)
