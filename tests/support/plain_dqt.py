"""Objective of DQT optimisation without the package's arithmetic: numpy division, scipy's entropy, single coefficients."""

import numpy as np
from scipy import stats


def quantize(c, step, rounding):
    """Return integers ``c / step``, rounded with ties away from zero or toward zero."""
    size = np.abs(c.astype(np.int64))
    size = np.floor(size / step + 0.5) if rounding == "half_away" else np.floor(size / step)
    return np.sign(c) * size.astype(np.int64)


def codes(coefficients, table, rounding, kind):
    """Return the codes, int64 (blocks, 64)."""
    found = np.stack([quantize(coefficients[:, i], step, rounding) for i, step in enumerate(table)], 1)
    return np.clip(found, -128, 127) if kind == "shift" else found


def restored(coefficients, table, rounding, kind, point=0):
    """Return the decoded coefficients, ``point`` eighths of a step further from 0, int64 (blocks, 64)."""
    q = codes(coefficients, table, rounding, kind)
    steps = np.array(table)
    return np.clip(q * steps + np.sign(q) * np.floor(point * steps / 8).astype(np.int64), -2048, 2047)


def rate_and_error(coefficients, table, rounding, kind, rate):
    """Return bits and mean squared error of each of the 64 coefficients."""
    q = codes(coefficients, table, rounding, kind)
    error = ((restored(coefficients, table, rounding, kind) - coefficients.astype(np.int64)) ** 2).mean(0)
    if rate == "zvc":
        return 1 + 8 * (q != 0).mean(0), error
    return np.array([stats.entropy(np.unique(column, return_counts=True)[1], base=2) for column in q.T]), error


def objective(coefficients, table, alpha, rounding, kind, rate):
    """Return the value that optimisation minimises."""
    bits, error = rate_and_error(coefficients, table, rounding, kind, rate)
    return (1 - alpha) * bits.mean() + alpha * error.mean()
