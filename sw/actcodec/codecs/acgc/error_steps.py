"""The largest steps of a quantiser that keep an error, for codecs whose step is free (nearest rounding).

Both functions take finite x of rank 1 to 8, and bounds (1,) or (channels,), and return steps of that shape, float32.
"""

from __future__ import annotations

from math import sqrt

import torch
from torch import Tensor

from actcodec.codecs.acgc.error_bounded import SAFE_STEP, along_channels
from actcodec.golden.pieces import CHUNK_VALUES

#: Greatest error of a quantiser in units of its RMS error, where errors are uniform.
UNIFORM_BOUND = sqrt(3)
#: Least and greatest step. All numbers of the three formats are multiples of the least one, which so makes no error.
_LEAST_STEP, _MOST_STEP = 2.0**-149, 2.0**127
#: What part of the allowed RMS error is near enough.
_NEAR = 0.99
#: Taken off a step that measurements suggest, lest the next one is a little too large again: each time more.
_MARGINS = (2.0**-10, 2.0**-8, 2.0**-6, 2.0**-4)
#: Most that one measurement changes a step, up or down.
_MOST_CHANGE = 4.0
#: More than half a unit in the last place: conversion to 16 bits may round twice.
_ROUNDING = 0.5 + 2.0**-12


def steps_of_bound(x: Tensor, bound: Tensor) -> Tensor:
    """Steps with which no value is off by more than ``bound`` (float64, positive), rounding to x's dtype included.

    Either the rounding is kept in reserve, or the step is a power of two: then a multiple of it that has too many digits for
    the dtype is never nearest to a value of the dtype, and nothing is rounded. The latter wins for bounds near the dtype's
    own precision.
    """
    info = torch.finfo(x.dtype)
    bound = bound.clamp_max(_MOST_STEP)
    largest = _largest(x, len(bound)) + bound
    rounding = largest.clamp_min(info.smallest_normal) * info.eps * _ROUNDING
    _, exponent = torch.frexp(2 * bound)
    power = torch.ldexp(torch.ones_like(bound), exponent - 1)
    # Quotients are rounded to float64, which moves the middle between two steps a little.
    return _stored(torch.maximum(2 * (bound - rounding) * (1 - 2.0**-20), power))


def steps_of_rms(x: Tensor, error: Tensor) -> Tensor:
    """About the largest steps with which the RMS error over x, or over each channel, is at most ``error`` (float32, positive).

    The first guess is that errors are uniform, a bound of ``sqrt(3) * error``. The error is measured and the guess corrected,
    in either direction: zeros, and whatever lies near a multiple of the step, have less error than the guess says. A step of
    ``2 * error`` is always safe. Rounding to x's dtype comes on top.
    """
    wanted = error.to(torch.float64)
    # Beyond it everything is zero.
    most = (2 * _largest(x, len(error)) / wanted).clamp_min(1)
    factor = most.clamp_max(UNIFORM_BOUND)
    safe = torch.ones_like(wanted)
    for margin in _MARGINS:
        measured = _rms(x, _stored(SAFE_STEP * wanted * factor)) / wanted
        safe = torch.where(measured <= 1, torch.maximum(safe, factor), safe)
        if bool(((measured <= 1) & ((measured > _NEAR) | (factor >= most))).all()):
            break
        change = (1 / measured).clamp(1 / _MOST_CHANGE, _MOST_CHANGE)
        factor = (factor * change * (1 - margin)).clamp_min(1).minimum(most)
    return _stored(SAFE_STEP * wanted * safe)


def whole_steps(x: Tensor, steps: Tensor) -> Tensor:
    """Values in units of their steps, rounded to nearest even, float64."""
    return (x.to(torch.float64) / along_channels(steps.to(torch.float64), x.ndim)).round_()


def _rms(x: Tensor, steps: Tensor) -> Tensor:
    """RMS error with these steps, float64 (steps,)."""
    spread = along_channels(steps.to(torch.float64), x.ndim)
    squares = torch.zeros(len(steps), dtype=torch.float64, device=x.device)
    for part in torch.split(x, -(-CHUNK_VALUES * len(x) // x.numel())):
        error = whole_steps(part, steps).mul_(spread).sub_(part)
        squares += error.square_().sum(_reduced(x.ndim, len(steps))).view(-1)
    return (squares * len(steps) / x.numel()).sqrt_()


def _largest(x: Tensor, count: int) -> Tensor:
    """Largest magnitude of x, or of each channel, float64 (count,)."""
    return x.abs().amax(_reduced(x.ndim, count)).view(-1).to(torch.float64)


def _reduced(rank: int, count: int) -> list[int]:
    """The axes over which values share one of so many steps."""
    return [axis for axis in range(rank) if count == 1 or axis != 1]


def _stored(steps: Tensor) -> Tensor:
    """float64 steps as they are stored: float32, rounded down, within limits."""
    limited = steps.clamp(_LEAST_STEP, _MOST_STEP)
    near = limited.to(torch.float32)
    return torch.where(near.to(torch.float64) > limited, torch.nextafter(near, torch.zeros_like(near)), near)
