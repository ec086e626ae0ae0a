"""Accuracy procedure of IEEE Std 1180-1990 (also ITU-T H.261 Annex A) for 8x8 inverse DCTs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from cdu_spec.config import CduConfig
from numpy.typing import NDArray
from scipy.fft import dctn, idctn

Blocks = NDArray[np.int64]

#: Number of blocks per run.
BLOCKS_PER_RUN = 10_000
#: Least and greatest sample and coefficient.
SAMPLE_LIMITS = (-256, 255)
COEFFICIENT_LIMITS = (-2048, 2047)


def random_samples(count: int, low: int, high: int) -> Blocks:
    """Return the first ``count`` numbers of the standard's generator from seed 1, between -low and high.

    The generator's states are computed by doubling: n states and the jump over n steps give 2 n states.
    """
    multiplier, increment = 1103515245, 12345
    states = np.array([multiplier + increment], dtype=np.uint32)
    while len(states) < count:
        states = np.concatenate([states, states * np.uint32(multiplier) + np.uint32(increment)])
        increment = (multiplier * increment + increment) % 2**32
        multiplier = multiplier * multiplier % 2**32
    masked = (states[:count] & np.uint32(0x7FFFFFFE)).astype(np.float64)
    return (masked / 0x7FFFFFFF * (low + high + 1)).astype(np.int64) - low


def applies(config: CduConfig) -> bool:
    """Return whether an inverse DCT is built for the procedure: 9-bit samples, and a precision that keeps the limits.

    ``benchmarks/idct_accuracy.py`` shows which precisions do.
    """
    return config.sample_bits == 9 and config.const_bits >= 11 and config.pass1_bits >= 2


@dataclass(frozen=True)
class Run:
    """One of the six runs: random samples between -low and high, with or without their sign reversed."""

    low: int
    high: int
    sign: int

    def stimulus(self, count: int = BLOCKS_PER_RUN) -> tuple[Blocks, Blocks]:
        """Return coefficients (count, 8, 8), indexed [vertical][horizontal], and their samples in double precision."""
        samples = self.sign * random_samples(64 * count, self.low, self.high).reshape(-1, 8, 8)
        forward = dctn(samples.astype(np.float64), axes=(1, 2), norm="ortho")
        coefficients = np.clip(np.rint(forward), *COEFFICIENT_LIMITS).astype(np.int64)
        inverse = idctn(coefficients.astype(np.float64), axes=(1, 2), norm="ortho")
        return coefficients, np.clip(np.rint(inverse), *SAMPLE_LIMITS).astype(np.int64)


def runs() -> Iterator[Run]:
    """Yield the six runs of the procedure."""
    for sign in (1, -1):
        for low, high in ((256, 255), (5, 5), (300, 300)):
            yield Run(low, high, sign)


@dataclass(frozen=True)
class Errors:
    """The five figures that the standard limits."""

    peak: float
    worst_pixel_mean_square: float
    mean_square: float
    worst_pixel_mean: float
    mean: float

    @classmethod
    def of(cls, samples: Blocks, reference: Blocks) -> Errors:
        """Return the errors of samples (n, 8, 8) against the reference."""
        error = (np.clip(samples, *SAMPLE_LIMITS) - reference).astype(np.float64)
        return cls(
            float(np.abs(error).max()),
            float((error**2).mean(axis=0).max()),
            float((error**2).mean()),
            float(np.abs(error.mean(axis=0)).max()),
            float(abs(error.mean())),
        )

    @property
    def passed(self) -> bool:
        """Return whether all limits of the standard are kept."""
        return all(getattr(self, name) <= limit for name, limit in vars(LIMITS).items())

    @staticmethod
    def worst(found: Sequence[Errors]) -> Errors:
        """Return the greatest of each figure over several runs."""
        return Errors(*(max(getattr(errors, name) for errors in found) for name in vars(LIMITS)))


#: The limits of the standard.
LIMITS = Errors(peak=1, worst_pixel_mean_square=0.06, mean_square=0.02, worst_pixel_mean=0.015, mean=0.0015)
