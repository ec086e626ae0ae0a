"""The largest steps of a quantiser that keep an error, for codecs whose step is free (nearest rounding).

Both functions take finite x of rank 1 to 8, bounds (1,) or (channels,), and what computes, and return steps of the shape of the
bounds, float32.
"""

from __future__ import annotations

from math import sqrt

import torch
from torch import Tensor

from actcodec.backends.backend import Backend
from actcodec.backends.row_quantizer import by_row
from actcodec.codecs.acgc.error_bounded import SAFE_STEP
from actcodec.golden.channel_statistics import ERROR_BITS
from actcodec.golden.formats import quotient

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


def steps_of_bound(x: Tensor, bound: Tensor, backend: Backend) -> Tensor:
    """Steps with which no value is off by more than ``bound`` (float64, positive), rounding to x's dtype included.

    Either the rounding is kept in reserve, or the step is a power of two: then a multiple of it that has too many digits for
    the dtype is never nearest to a value of the dtype, and nothing is rounded. The latter wins for bounds near the dtype's
    own precision.
    """
    info = torch.finfo(x.dtype)
    bound = bound.clamp_max(_MOST_STEP)
    largest = backend.channel_maxima(by_row(x, len(bound))) + bound
    rounding = largest.clamp_min(info.smallest_normal) * info.eps * _ROUNDING
    _, exponent = torch.frexp(2 * bound)
    power = torch.ldexp(torch.ones_like(bound), exponent - 1)
    # Quotients are rounded to float64, which moves the middle between two steps a little.
    return _stored(torch.maximum(2 * (bound - rounding) * (1 - 2.0**-20), power))


def steps_of_rms(x: Tensor, error: Tensor, backend: Backend) -> Tensor:
    """About the largest steps with which the RMS error over x, or over each channel, is at most ``error`` (float32, positive).

    The first guess is that errors are uniform, a bound of ``sqrt(3) * error``. The error is measured and the guess corrected,
    in either direction: zeros, and whatever lies near a multiple of the step, have less error than the guess says. A step of
    ``2 * error`` is always safe. Rounding to x's dtype comes on top.
    """
    wanted, rows = error.to(torch.float64), by_row(x, len(error))
    # Beyond it everything is zero.
    most = (2 * backend.channel_maxima(rows) / wanted).clamp_min(1)
    factor = most.clamp_max(UNIFORM_BOUND)
    safe = torch.ones_like(wanted)
    for margin in _MARGINS:
        steps = _stored(SAFE_STEP * wanted * factor).to(torch.float64)
        squares = quotient(backend.squared_errors(rows, steps).to(torch.float64) * len(error), x.numel())
        measured = steps * (squares * 2.0**-ERROR_BITS).sqrt() / wanted
        safe = torch.where(measured <= 1, torch.maximum(safe, factor), safe)
        if bool(((measured <= 1) & ((measured > _NEAR) | (factor >= most))).all()):
            break
        change = (1 / measured).clamp(1 / _MOST_CHANGE, _MOST_CHANGE)
        factor = (factor * change * (1 - margin)).clamp_min(1).minimum(most)
    return _stored(SAFE_STEP * wanted * safe)


def _stored(steps: Tensor) -> Tensor:
    """float64 steps as they are stored: float32, rounded down, within limits."""
    limited = steps.clamp(_LEAST_STEP, _MOST_STEP)
    near = limited.to(torch.float32)
    return torch.where(near.to(torch.float64) > limited, torch.nextafter(near, torch.zeros_like(near)), near)
