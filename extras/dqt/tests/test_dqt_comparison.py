"""Interpolation between measured tables."""

import math

import pytest
from cdu_dqt.comparison import comparisons, errors_at, nearest
from cdu_dqt.measure import RatePoint
from cdu_dqt.study import IMAGES, PUBLISHED, DqtSettings, DqtStudy, MeasuredTable


def measured(name, kind, alpha, size, error):
    rounding = {"div": "half_away", "shift": "trunc"}[kind]
    return MeasuredTable(name, kind, rounding, 1.125, alpha, (8,) * 64, RatePoint(size, error, 0.0))


def test_equal_bytes_and_equal_error_on_a_power_law():
    """Searched: error = 0.1 / bytes, alpha / (1 - alpha) = bytes**2. Known: twice the error. Some lie outside."""
    sweep = [
        measured(rate, kind, size**2 / (1 + size**2), size, 0.1 / size)
        for kind, rate in (("div", "entropy"), ("shift", "zvc"))
        for size in (0.8, 0.1, 0.2, 0.4)
    ]
    sizes = {"optL": 0.3, "optH": 0.15}
    known = [
        measured(name, kind, None, sizes.get(name, 2.0), 0.2 / sizes.get(name, 2.0))
        for kind in ("div", "shift")
        for name in (*PUBLISHED[kind], *IMAGES)
    ]
    found = {(one.kind, one.table): one for one in comparisons(DqtStudy(DqtSettings(0.1), (8,) * 64, [], sweep + known))}
    for name, size in sizes.items():
        one = found["div", name]
        assert one.relative_error == pytest.approx(0.2 / size)
        assert one.error_at_equal_bytes == pytest.approx(0.1 / size)
        assert one.alpha == pytest.approx(size**2 / (1 + size**2))
    assert found["div", "optL"].bytes_at_equal_error == pytest.approx(0.15)
    assert found["div", "optH"].bytes_at_equal_error is None  # 0.075 bytes: below the sweep
    outside = found["shift", "optsL"]
    assert outside.alpha is outside.error_at_equal_bytes is None
    curve = DqtStudy(DqtSettings(0.1), (8,) * 64, [], sweep).curve("zvc", "shift", "trunc", 1.125)
    assert [one.point.bytes_per_value for one in curve] == [0.1, 0.2, 0.4, 0.8]
    assert errors_at(math.sqrt(0.1 * 0.2), curve) == pytest.approx(0.1 / math.sqrt(0.02))
    assert nearest(0.29, curve).point.bytes_per_value == 0.4
    assert nearest(0.28, curve).point.bytes_per_value == 0.2
