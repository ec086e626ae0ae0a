"""Compare training with and without a codec by paired differences, and compute the difference that they could have shown.

Every policy trains from the same weights, with the same batches, and is tested on the same images as the uncompressed run of
its seed. Each seed and image gives a difference: +1 if only the policy is right, -1 if only the uncompressed network
is, else 0. Their mean, in points of accuracy, varies with the seeds and with the images; both are resampled.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from cdu_tools.errors import UserError
from numpy.typing import NDArray

#: Resamples of the bootstrap, and their seed.
RESAMPLES, _SEED = 4000, 0
#: Two-sided confidence, and the probability with which the least difference is found.
CONFIDENCE, POWER = 0.95, 0.8


@dataclass(frozen=True)
class Comparison:
    """A policy beside the uncompressed runs of the same seeds, in points of accuracy."""

    difference: float  #: mean
    low: float  #: ends of the interval of 95 %
    high: float
    worst: float  #: lower bound with 95 % confidence
    least: float  #: least true difference that such a comparison shows four times out of five
    gained: int  #: answers, over all seeds, that only the policy has right
    lost: int  #: answers that only the uncompressed network has right

    def no_worse_than(self, margin: float) -> bool:
        """Return whether, with 95 % confidence, less than ``margin`` points are lost (non-inferiority)."""
        return self.worst > -margin


@dataclass(frozen=True)
class Spread:
    """The parts of the variance of differences, in squared points: seeds, images, and both together."""

    seeds: float
    images: float
    rest: float

    def error(self, seeds: float, images: float) -> float:
        """Return the standard error of the mean over so many seeds and images."""
        return float(np.sqrt(self.seeds / seeds + self.images / images + self.rest / (seeds * images)))

    def seeds_for(self, margin: float, images: int) -> float:
        """Return the seeds that show, four times of five, that a policy which loses nothing loses less than ``margin`` points.

        The result is infinite if ``images`` images alone vary too much.
        """
        wanted = (margin / (NormalDist().inv_cdf(CONFIDENCE) + NormalDist().inv_cdf(POWER))) ** 2
        left = wanted - self.images / images
        return (self.seeds + self.rest / images) / left if left > 0 else float("inf")


def compare(policy: NDArray[np.bool_], base: NDArray[np.bool_]) -> Comparison:
    """Bootstrap paired right answers, bool (seeds, images) each, with seeds and images resampled independently.

    UserError for less than two seeds or images, or if the shapes differ.
    """
    differences = _differences(policy, base)
    seeds, images = differences.shape
    rng = np.random.default_rng(_SEED)
    rows = rng.multinomial(seeds, np.full(seeds, 1 / seeds), RESAMPLES) / seeds
    columns = rng.multinomial(images, np.full(images, 1 / images), RESAMPLES) / images
    means = np.einsum("rs,si,ri->r", rows, differences, columns, optimize=True)
    tail = (1 - CONFIDENCE) / 2
    low, worst, high = np.quantile(means, [tail, 2 * tail, 1 - tail])
    least = (NormalDist().inv_cdf(1 - tail) + NormalDist().inv_cdf(POWER)) * means.std(ddof=1)
    gained, lost = int((differences > 0).sum()), int((differences < 0).sum())
    return Comparison(float(differences.mean()), float(low), float(high), float(worst), float(least), gained, lost)


def spread(policy: NDArray[np.bool_], base: NDArray[np.bool_]) -> Spread:
    """Return variance components of the differences, by analysis of variance of the crossed table; see :func:`compare`."""
    differences = _differences(policy, base)
    seeds, images = differences.shape
    by_seed, by_image = differences.mean(1), differences.mean(0)
    residual = differences - by_seed[:, None] - by_image[None, :] + differences.mean()
    rest = float(residual.var(ddof=0)) * seeds * images / ((seeds - 1) * (images - 1))
    return Spread(
        max(float(by_seed.var(ddof=1)) - rest / images, 0.0), max(float(by_image.var(ddof=1)) - rest / seeds, 0.0), rest
    )


def _differences(policy: NDArray[np.bool_], base: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return the points of each answer, (seeds, images)."""
    if policy.shape != base.shape or policy.ndim != 2 or min(policy.shape) < 2:
        given = f"answers of shapes {policy.shape} and {base.shape}"
        raise UserError(f"{given} cannot be paired: use two tables of at least 2 seeds and 2 images")
    return 100.0 * (policy.astype(np.float64) - base)
