"""Errors of the transforms: the inverse by IEEE 1180-1990, the forward against double precision.

The golden model is measured; the hardware gives the same integers.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
import torch
from actcodec.golden.dct import dct, idct
from scipy.fft import dctn

from cdu_verif.stimulus.ieee1180 import AccuracyErrors, Blocks, runs

#: Random blocks that the forward transform is measured on.
FORWARD_BLOCKS = 100_000


@dataclass(frozen=True)
class ForwardErrors:
    """Differences from the exact orthonormal coefficients; rounded exact ones have 0.5 and 1/12."""

    peak: float
    mean_square: float


@cache
def inverse_errors(const_bits: int, pass1_bits: int) -> tuple[AccuracyErrors, ...]:
    """The errors of all six runs of IEEE 1180, for fraction bits of the constants and bits kept between the passes."""
    found = []
    for run in runs():
        coefficients, reference = run.stimulus()
        samples = idct(torch.from_numpy(coefficients.astype(np.int16)), const_bits, pass1_bits, sample_bits=9)
        found.append(AccuracyErrors.of(samples.numpy().astype(np.int64), reference))
    return tuple(found)


def forward_samples(count: int = FORWARD_BLOCKS) -> Blocks:
    """Random 8-bit samples (count, 8, 8)."""
    return np.random.default_rng(0).integers(-128, 128, (count, 8, 8))


@cache
def forward_errors(const_bits: int, pass1_bits: int) -> ForwardErrors:
    """The errors of the forward transform on random blocks of 8-bit samples."""
    samples = forward_samples()
    exact = dctn(samples.astype(np.float64), axes=(1, 2), norm="ortho")
    error = dct(torch.from_numpy(samples.astype(np.int8)), const_bits, pass1_bits).numpy() - exact
    return ForwardErrors(float(np.abs(error).max()), float((error**2).mean()))
