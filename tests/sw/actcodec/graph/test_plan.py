"""The choice under a budget, against all choices tried one by one."""

import itertools

import numpy as np
import pytest
from actcodec.graph.plan import Item, Option, choose, least_budget, table


def items_of(seed, count, moments):
    numbers = np.random.default_rng(seed)
    items = []
    for _ in range(count):
        first, last = sorted(int(one) for one in numbers.integers(0, moments, 2))
        size = int(numbers.integers(40, 400))
        losses = np.sort(numbers.random(3))
        options = [Option("int8", size // 4, losses[0]), Option("int4", size // 8, losses[2]), Option("keep", size, 0.0)]
        if numbers.random() < 0.5:
            options.append(Option("recompute", 0, 0.0, float(numbers.integers(1, 9))))
        items.append(Item(tuple(options), first, last))
    return items, [int(one) for one in numbers.integers(0, 200, moments)]


def peak(picked, items, others):
    live = list(others)
    for option, item in zip(picked, items, strict=True):
        for moment in range(item.first, item.last + 1):
            live[moment] += option.nbytes
    return max(live)


def all_choices(items, others, work):
    for picked in itertools.product(*(item.options for item in items)):
        if sum(option.work for option in picked) <= work:
            yield peak(picked, items, others), sum(option.loss for option in picked)


@pytest.mark.parametrize("seed", range(6))
def test_the_choice_is_the_best_of_all(seed):
    items, others = items_of(seed, 5, 7)
    found = list(all_choices(items, others, 6.0))
    for budget in sorted({peak for peak, _ in found})[:: max(len(found) // 40, 1)]:
        picked = choose(items, others, budget, 6.0)
        assert peak(picked, items, others) <= budget
        assert sum(option.work for option in picked) <= 6.0
        best = min(loss for peak, loss in found if peak <= budget)
        assert sum(option.loss for option in picked) == pytest.approx(best, rel=2e-3, abs=1e-6)


@pytest.mark.parametrize("seed", range(6))
def test_losses_far_below_the_greatest_are_told_apart(seed):
    numbers = np.random.default_rng(seed)
    sizes, losses = numbers.integers(40, 400, 7), 1e-11 * numbers.random(7)
    items = [
        Item((Option("int4", n // 8, 1.0), Option("int16", n // 2, loss), Option("keep", int(n), 0.0)), 0, 0)
        for n, loss in zip(sizes, losses, strict=True)
    ]
    found = list(all_choices(items, [0], 0.0))
    for share in (0.55, 0.65, 0.75, 0.85, 0.95):
        budget = int(share * sizes.sum())
        best = min(loss for peak, loss in found if peak <= budget)
        assert sum(option.loss for option in choose(items, [0], budget, 0.0)) == pytest.approx(best, rel=2e-3, abs=0.0)


@pytest.mark.parametrize("seed", range(6))
def test_the_least_budget_is_enough(seed):
    items, others = items_of(seed, 5, 7)
    least = min(peak for peak, _ in all_choices(items, others, 6.0))
    assert choose(items, others, least - 1, 6.0) is None
    assert least_budget(items, others, 6.0) == least
    assert peak(choose(items, others, least, 6.0), items, others) == least


def test_nothing_to_choose():
    assert choose([], [3, 5], 5, 0.0) == []
    assert choose([], [3, 5], 4, 0.0) is None
    assert least_budget([], [3, 5], 0.0) == 5


def test_table():
    assert table([{"a": 1, "long": "x"}, {"a": 22, "long": "yyyyy"}]) == "a   long\n1   x\n22  yyyyy"
    assert table([]) == ""
