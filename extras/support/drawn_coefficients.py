"""Coefficients like those of activations, and what they are tried with."""

import numpy as np

#: Kind of quantiser and measure of the rate.
CASES = [("div", "entropy"), ("shift", "entropy"), ("shift", "zvc")]


def drawn(seed, count=300, largest=400):
    """Coefficients whose spread falls with frequency; two blocks have the extremes."""
    random = np.random.default_rng(seed)
    spread = largest / (1 + np.add.outer(np.arange(8), np.arange(8)).ravel() ** 1.5)
    c = np.rint(random.laplace(0, spread, (count, 64))).clip(-2048, 2047)
    c[0], c[1] = -2048, 2047
    return c.astype(np.int16)
