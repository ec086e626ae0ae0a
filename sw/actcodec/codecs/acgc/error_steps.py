"""Largest steps of a quantiser that keep an error, for codecs with any step width and nearest rounding.

Both functions take finite x of rank 1 to 8, bounds (1,) or (channels,), and a backend that computes, and return float32 steps
of the shape of the bounds.
"""

from __future__ import annotations

from math import sqrt

import torch
from torch import Tensor

from actcodec.backends.backend import Backend
from actcodec.codecs.acgc.error_bounded import SAFE_STEP
from actcodec.golden.channel_statistics import ERROR_BITS, squared_errors
from actcodec.golden.floating.rows import by_row
from actcodec.golden.formats import quotient
from actcodec.golden.sfpr import channel_maxima

#: Greatest error of a quantiser in units of its RMS error, for uniform errors.
UNIFORM_BOUND = sqrt(3)
#: Least and greatest step. All numbers of the three formats are multiples of the least step, which therefore makes no error.
_LEAST_STEP, _MOST_STEP = 2.0**-149, 2.0**127
#: Part of the allowed RMS error above which a measured error is near enough.
_NEAR = 0.99
#: Parts by which a measured step is reduced, so that the next one is not slightly too large again; larger each time.
_MARGINS = (2.0**-10, 2.0**-8, 2.0**-6, 2.0**-4)
#: Largest factor by which one measurement changes a step, up or down.
_MOST_CHANGE = 4.0
#: Rounding error in units in the last place; more than a half, because conversion to 16 bits may round twice.
_ROUNDING = 0.5 + 2.0**-12


def steps_of_bound(x: Tensor, bound: Tensor, backend: Backend) -> Tensor:
    """Return steps with which no error exceeds ``bound`` (float64, positive), including rounding to x's dtype.

    Either the rounding error is subtracted from the bound, or the step is a power of two: then a multiple of it with too many
    digits for the dtype is never nearest to a value of the dtype, and nothing is rounded. The power of two is larger for bounds
    near the dtype's own precision.
    """
    info = torch.finfo(x.dtype)
    bound = bound.clamp_max(_MOST_STEP)
    largest = backend.run(channel_maxima, by_row(x, len(bound))) + bound
    rounding = largest.clamp_min(info.smallest_normal) * info.eps * _ROUNDING
    _, exponent = torch.frexp(2 * bound)
    power = torch.ldexp(torch.ones_like(bound), exponent - 1)
    # Quotients are rounded to float64, which slightly moves the middle between two steps.
    return _stored(torch.maximum(2 * (bound - rounding) * (1 - 2.0**-20), power))


def steps_of_rms(x: Tensor, error: Tensor, backend: Backend) -> Tensor:
    """Return about the largest steps with which the RMS error over x, or over each channel, is at most ``error``.

    ``error`` is float32, positive. The first guess assumes uniform errors, a bound of ``sqrt(3) * error``. The error is
    measured and the guess corrected in either direction: zeros and values near a multiple of the step have smaller errors than
    uniform ones. A step of ``2 * error`` is always safe. Rounding to x's dtype adds to the error.
    """
    wanted, rows = error.to(torch.float64), by_row(x, len(error))
    # Every value is zero with larger steps.
    most = (2 * backend.run(channel_maxima, rows) / wanted).clamp_min(1)
    factor = most.clamp_max(UNIFORM_BOUND)
    safe = torch.ones_like(wanted)
    for margin in _MARGINS:
        steps = _stored(SAFE_STEP * wanted * factor).to(torch.float64)
        squares = quotient(backend.run(squared_errors, rows, steps).to(torch.float64) * len(error), x.numel())
        measured = steps * (squares * 2.0**-ERROR_BITS).sqrt() / wanted
        safe = torch.where(measured <= 1, torch.maximum(safe, factor), safe)
        if bool(((measured <= 1) & ((measured > _NEAR) | (factor >= most))).all()):
            break
        change = (1 / measured).clamp(1 / _MOST_CHANGE, _MOST_CHANGE)
        factor = (factor * change * (1 - margin)).clamp_min(1).minimum(most)
    return _stored(SAFE_STEP * wanted * safe)


def _stored(steps: Tensor) -> Tensor:
    """Convert float64 steps to the float32 steps that are stored, rounded down and within limits."""
    limited = steps.clamp(_LEAST_STEP, _MOST_STEP)
    near = limited.to(torch.float32)
    return torch.where(near.to(torch.float64) > limited, torch.nextafter(near, torch.zeros_like(near)), near)
