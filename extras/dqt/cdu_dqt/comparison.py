"""Compare known tables with searched ones, at equal bytes and at equal error."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, log

import numpy as np

from cdu_dqt.study import DqtStudy, MeasuredTable, known_tables

_IMAGES = ("image30", "image50", "image80")


@dataclass(frozen=True)
class DqtComparison:
    """A known table and the sweep over alpha, interpolated on two logarithmic axes; None beyond the ends of the sweep."""

    table: str
    codec: str
    kind: str
    rounding: str
    bytes_per_value: float  #: bytes per value with the known table
    relative_error: float
    alpha: float | None  #: at which the sweep needs the same bytes
    error_at_equal_bytes: float | None  #: error of the sweep
    bytes_at_equal_error: float | None


def comparisons(study: DqtStudy) -> list[DqtComparison]:
    """Compare known tables and some of image quality, with each codec's usual rounding, with tables searched for its rate."""
    found = []
    for quantizer in study.settings.compared:
        sweep = study.written(quantizer)
        for name in (*known_tables(quantizer), *_IMAGES):
            known = study.known(name, quantizer.kind, quantizer.rounding.value)
            found.append(_compare(known, sweep, quantizer.codec))
    return found


def errors_at(size: float, sweep: Sequence[MeasuredTable]) -> float | None:
    """Return the relative error at ``size`` bytes per value, of a sweep in the order of bytes; None outside it."""
    return interpolated(size, [one.point.bytes_per_value for one in sweep], [one.point.relative_error for one in sweep])


def nearest(size: float, sweep: Sequence[MeasuredTable]) -> MeasuredTable:
    """Return the table of a sweep with the nearest bytes."""
    return min(sweep, key=lambda one: abs(log(one.point.bytes_per_value / size)))


def _compare(known: MeasuredTable, sweep: Sequence[MeasuredTable], codec: str) -> DqtComparison:
    size, error = known.point.bytes_per_value, known.point.relative_error
    sizes = [one.point.bytes_per_value for one in sweep]
    errors = [one.point.relative_error for one in sweep]
    # Alpha by its odds, as the sweep is spaced.
    odds = [one.alpha / (1 - one.alpha) for one in sweep if one.alpha is not None]
    at_size = interpolated(size, sizes, odds)
    return DqtComparison(
        known.name,
        codec,
        known.kind,
        known.rounding,
        size,
        error,
        None if at_size is None else at_size / (1 + at_size),
        errors_at(size, sweep),
        interpolated(error, errors, sizes),
    )


def interpolated(at: float, xs: Sequence[float], ys: Sequence[float]) -> float | None:
    """Interpolate linearly in the logarithms, between points in any order; None outside of them."""
    if not min(xs) <= at <= max(xs):
        return None
    ordered = np.log(sorted(zip(xs, ys, strict=True))).T
    return exp(float(np.interp(log(at), *ordered)))
