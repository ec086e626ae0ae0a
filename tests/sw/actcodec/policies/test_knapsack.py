"""The multiple-choice knapsack: dynamic programming against all choices, the greedy one against dynamic programming."""

from itertools import product

import pytest
from actcodec.policies.budget.knapsack import greedy_choice, hull, lightest_choice, no_worse_choice
from cdu_tools.errors import UserError
from exact_knapsack import exact_choice
from hypothesis import given
from hypothesis import strategies as st

OPTIONS = st.lists(st.tuples(st.integers(0, 12), st.integers(0, 100).map(float)), min_size=1, max_size=5)
ITEMS = st.lists(OPTIONS, min_size=1, max_size=5)


def best_loss(items, budget):
    """Least loss of all choices within the budget, by trying them all."""
    return min(sum(loss for _, loss in choice) for choice in product(*items) if sum(weight for weight, _ in choice) <= budget)


def affordable(items, extra):
    return sum(min(weight for weight, _ in options) for options in items) + extra


@given(ITEMS, st.integers(0, 40))
def test_dynamic_programme_is_the_best_of_all_choices(items, extra):
    budget = affordable(items, extra)
    found = exact_choice(items, budget)
    assert found.loss == found.lower_bound == best_loss(items, budget)
    assert found.weight == sum(options[place][0] for options, place in zip(items, found.picked, strict=True)) <= budget


@given(ITEMS, st.integers(0, 40))
def test_greedy_choice_lies_between_its_bound_and_one_step_above(items, extra):
    budget = affordable(items, extra)
    found, best = greedy_choice(items, budget), exact_choice(items, budget)
    assert found.weight <= budget
    assert found.lower_bound <= best.loss + 1e-9
    assert best.loss <= found.loss
    # One step of a hull removes no more than an item can lose.
    assert found.loss - found.lower_bound <= max(loss for options in items for _, loss in options) + 1e-9


@given(ITEMS)
def test_enough_budget_gives_the_least_loss_of_each_item(items):
    budget = sum(max(weight for weight, _ in options) for options in items)
    assert greedy_choice(items, budget).loss == sum(min(loss for _, loss in options) for options in items)


@given(st.lists(OPTIONS, min_size=1, max_size=4), st.integers(0, 30))
def test_greedy_is_the_best_when_a_hull_ends_where_the_budget_does(items, steps):
    """At budgets at which no step is cut the relaxation is met, so that the choice is the best one."""
    found = greedy_choice(items, affordable(items, steps))
    again = greedy_choice(items, found.weight)
    if again.loss == pytest.approx(again.lower_bound):
        assert again.loss == pytest.approx(exact_choice(items, int(found.weight)).loss)


def test_known_answer():
    """Two items: the step of the first removes 8 per unit, then 1; that of the second 5, then 2."""
    items = [[(1, 10.0), (2, 2.0), (4, 0.0)], [(1, 9.0), (2, 4.0), (3, 2.0)]]
    assert [greedy_choice(items, budget).picked for budget in range(2, 8)] == [
        (0, 0), (1, 0), (1, 1), (1, 2), (1, 2), (2, 2)
    ]  # fmt: skip
    assert lightest_choice(items).loss == 19
    assert greedy_choice(items, 6).lower_bound == 3  # half of the last step


def test_hull_leaves_out_what_lies_above_it():
    assert hull([(4, 0.0), (1, 10.0), (2, 9.0), (3, 1.0), (3, 5.0), (5, 0.0)]) == [1, 3, 0]
    assert hull([(2, 1.0)]) == [0]


@pytest.mark.parametrize(
    ("items", "budget", "message"),
    [
        ([], 1, "no item"),
        ([[(1, 1.0)], []], 3, "without options"),
        ([[(1, float("inf"))]], 3, "not finite"),
        ([[(-1, 1.0)]], 3, "negative"),
        ([[(2, 1.0)], [(3, 0.0), (4, 0.0)]], 4, "weigh 5"),
    ],
)
def test_bad_input(items, budget, message):
    with pytest.raises(UserError, match=message):
        greedy_choice(items, budget)


def test_steps_that_do_not_fit_any_more_do_not_make_it_worse_than_one_candidate_for_all():
    """Greedy takes the first item's step, which is the better one per weight, and has no room left for the second's."""
    items = [[(0, 10.0), (1, 8.9), (0, 10.0)], [(0, 10.0), (0, 10.0), (10, 0.0)]]
    alike = [[place] * len(items) for place in range(3)]
    assert greedy_choice(items, 10).loss == pytest.approx(18.9)
    found = no_worse_choice(items, 10, alike)
    assert found.picked == (2, 2)
    assert (found.weight, found.loss) == (10, 10.0)
    assert no_worse_choice(items, 9, alike).picked == greedy_choice(items, 9).picked
