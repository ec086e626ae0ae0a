"""Checks of numbers: truth values, NaN and other types are none."""

from math import inf, nan

import pytest
from cdu_tools.numbers import is_real, is_whole


@pytest.mark.parametrize("value", [True, False, None, "1", [1], 1j])
def test_what_is_no_number(value):
    assert not is_whole(value)
    assert not is_real(value)


@pytest.mark.parametrize(("value", "whole", "real"), [(1, True, True), (4, True, True), (0, False, False), (5, False, False)])
def test_both_ends_are_allowed(value, whole, real):
    assert is_whole(value, 1, 4) == whole
    assert is_real(value, 1, 4) == real


def test_floats_are_real_and_not_whole():
    assert not is_whole(2.0)
    assert is_real(2.0, 1)
    assert is_real(inf)
    assert not is_real(nan)
