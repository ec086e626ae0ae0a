"""Bits under a budget: the published answer, the exact optimum, and bounds for different sizes."""

from fractions import Fraction
from itertools import product

import pytest
import torch
from actcodec.codecs.actnn.allocation import Allocation, equal_allocation, greedy_allocation
from cdu_spec import UserError
from exact_knapsack import exact_allocation
from hypothesis import given, settings
from hypothesis import strategies as st

PUBLISHED = [6.0649, 34.829, 0.0061282, 0.030388, 0.89319, 16.165, 5.7692, 64.579]
PUBLISHED_BITS = (2, 3, 1, 1, 1, 3, 2, 3)
sensitivities = st.one_of(st.just(0.0), st.floats(1e-6, 1e6), st.integers(1, 3).map(float))


def exact_variance(bits, sensitivity):
    return sum(Fraction(w) / (2**b - 1) ** 2 for w, b in zip(sensitivity, bits, strict=True))


def used(bits, sizes):
    return sum(b * size for b, size in zip(bits, sizes, strict=True))


def test_the_published_answer():
    assert greedy_allocation(PUBLISHED, [1] * 8, 16).bits == PUBLISHED_BITS
    assert greedy_allocation(PUBLISHED, [300] * 8, 300 * 16).bits == PUBLISHED_BITS
    assert exact_allocation(PUBLISHED, [1] * 8, 16).bits == PUBLISHED_BITS
    assert tuple(equal_allocation(torch.tensor(PUBLISHED), 16).tolist()) == PUBLISHED_BITS


@settings(max_examples=60)
@given(st.lists(st.tuples(sensitivities, st.integers(1, 5)), min_size=1, max_size=3), st.data())
def test_the_exact_programme_finds_the_best_of_all(items, data):
    sensitivity, sizes = zip(*items, strict=True)
    budget = data.draw(st.integers(sum(sizes), 9 * sum(sizes)))
    found = exact_allocation(sensitivity, sizes, budget)
    assert used(found.bits, sizes) <= budget
    possible = [bits for bits in product(range(1, 9), repeat=len(sizes)) if used(bits, sizes) <= budget]
    best = min(exact_variance(bits, sensitivity) for bits in possible)
    assert float(exact_variance(found.bits, sensitivity)) == pytest.approx(float(best), rel=1e-12)


@given(st.lists(sensitivities, min_size=1, max_size=30), st.integers(1, 1000), st.data())
def test_greedy_is_exact_for_equal_sizes(sensitivity, size, data):
    count = len(sensitivity)
    budget = data.draw(st.integers(count, 8 * count))
    greedy = greedy_allocation(sensitivity, [size] * count, budget * size)
    exact = exact_allocation(sensitivity, [size] * count, budget * size)
    assert sum(greedy.bits) == budget
    assert greedy.variance == pytest.approx(exact.variance, rel=1e-9)
    assert greedy.variance == greedy.lower_bound
    by_sort = equal_allocation(torch.tensor(sensitivity, dtype=torch.float64), budget)
    assert int(by_sort.sum()) == budget
    assert Allocation.of(by_sort.tolist(), sensitivity).variance == pytest.approx(exact.variance, rel=1e-9)


@given(st.lists(st.tuples(sensitivities, st.integers(1, 12)), min_size=1, max_size=12), st.data())
def test_different_sizes_greedy_stays_within_its_bound(items, data):
    """Check that greedy is never better than exact, exact never below the bound, and less than an item's bit unused."""
    sensitivity, sizes = zip(*items, strict=True)
    budget = data.draw(st.integers(sum(sizes), 8 * sum(sizes)))
    greedy, exact = greedy_allocation(sensitivity, sizes, budget), exact_allocation(sensitivity, sizes, budget)
    slack = 1e-9 * (1 + max(sensitivity))
    assert budget - max(sizes) < used(greedy.bits, sizes) <= budget
    assert greedy.lower_bound - slack <= exact.variance <= greedy.variance + slack
    # The result is the best one for the bits that it uses.
    same = exact_allocation(sensitivity, sizes, used(greedy.bits, sizes))
    assert same.variance == pytest.approx(greedy.variance, rel=1e-9, abs=slack)
    # A whole bit of one item closes the gap.
    last = max(w * (1 / (2**b - 1) ** 2 - 1 / (2 ** (b + 1) - 1) ** 2) for w, b in zip(sensitivity, greedy.bits, strict=True))
    assert greedy.variance - greedy.lower_bound <= last + slack


def test_the_gap_can_be_there():
    """Check a case with a gap: greedy removes the large item's bit, which leaves much unused; exact removes the small one's."""
    greedy, exact = greedy_allocation([10.0, 1.1], [10, 1], 87), exact_allocation([10.0, 1.1], [10, 1], 87)
    assert (greedy.bits, exact.bits) == ((7, 8), (8, 7))
    assert greedy.lower_bound < exact.variance < greedy.variance


@pytest.mark.parametrize("weight", [0.0, 3.0])
@pytest.mark.parametrize("total", [7, 8, 20, 21, 56])
def test_equal_items_share_evenly(weight, total):
    for bits in (greedy_allocation([weight] * 7, [5] * 7, 5 * total).bits, equal_allocation(torch.full((7,), weight), total)):
        assert max(bits) - min(bits) <= 1
        assert sum(bits) == total


def test_a_budget_of_all_bits_leaves_them():
    assert greedy_allocation([1.0, 0.0], [3, 4], 10**9) == Allocation((8, 8), 1 / 255**2, 1 / 255**2)
    assert exact_allocation([1.0, 0.5], [3, 4], 10**9).bits == (8, 8)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([1.0], [2], 1), "a budget of 1 bits does not give 2 values one bit each: use 2 or more"),
        (([1.0, 2.0], [2], 9), "2 sensitivities and 1 sizes"),
        (([], [], 9), "0 sensitivities"),
        (([-1.0], [2], 9), "negative or not finite"),
        (([float("nan")], [2], 9), "negative or not finite"),
        (([1.0], [0], 9), "size 0 is not allowed"),
    ],
)
def test_bad_input(arguments, message):
    with pytest.raises(UserError, match=message):
        greedy_allocation(*arguments)


@pytest.mark.parametrize("total", [2, 25])
def test_totals_that_cannot_be(total):
    with pytest.raises(UserError, match=f"{total} bits for 3 items are not possible: use 3 to 24"):
        equal_allocation(torch.ones(3), total)
