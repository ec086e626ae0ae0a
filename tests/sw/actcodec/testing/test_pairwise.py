"""Check the choice of cases in which all pairs of values meet."""

from itertools import product

import pytest
from actcodec.testing.pairwise import pairs, pairwise


def all_pairs(cases):
    return {pair for case in cases for pair in pairs(case)}


@pytest.mark.parametrize("extents", [(2, 2), (3, 4), (4, 3, 2), (5, 3, 3, 2), (2,) * 8])
@pytest.mark.parametrize("seed", [0, 1])
def test_every_pair_of_a_product_is_chosen(extents, seed):
    cases = list(product(*map(range, extents)))
    chosen = pairwise(cases, seed=seed)
    assert all_pairs(chosen) == all_pairs(cases)
    assert chosen == sorted(set(chosen))


def test_every_pair_of_a_product_with_gaps_is_chosen():
    cases = [case for case in product("abcd", (None, 1, 2), "xyz") if (case[0] == "a") == (case[1] is None)]
    assert all_pairs(pairwise(cases)) == all_pairs(cases)


def test_few_cases_are_chosen():
    """Compare with the least numbers there are: 9 of 81 for four factors of three values, 6 of 256 for eight of two."""
    assert len(pairwise(list(product(range(3), repeat=4)))) <= 12
    assert len(pairwise(list(product(range(2), repeat=8)))) <= 9


def test_a_seed_decides():
    cases = list(product(range(4), repeat=4))
    assert pairwise(cases, seed=3) == pairwise(cases, seed=3)
    assert pairwise(cases, seed=3) != pairwise(cases, seed=4)


def test_other_values_than_those_of_a_case_are_paired():
    cases = [(number, letter) for number in range(4) for letter in "ab"]
    assert len(pairwise(cases, lambda case: (case[0] % 2, case[1]))) == 4
