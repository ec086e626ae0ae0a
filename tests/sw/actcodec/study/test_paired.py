"""Paired differences: intervals that hold as often as they say, against simulation and against scipy."""

import numpy as np
import pytest
from actcodec.study.paired import compare, spread
from cdu_tools.errors import UserError
from scipy.stats import norm


def answers(rng, seeds, images, *, lost=0.0, by_seed=0.0):
    """Right answers of both. Images are hard or easy for all seeds; the policy loses ``lost`` points, by seed more or less."""
    ease = norm.ppf(rng.uniform(0.05, 0.95, images))
    noise = rng.normal(size=(seeds, images)), rng.normal(size=(seeds, images))
    base = ease + 0.7 * noise[0] > 0
    drop = lost / 100 + by_seed / 100 * rng.normal(size=(seeds, 1))
    policy = ease + 0.7 * (0.9 * noise[0] + 0.436 * noise[1]) > 0
    flip = rng.uniform(size=(seeds, images)) < np.abs(drop) / np.where(drop > 0, policy.mean(), 1 - policy.mean())
    return np.where(flip, drop < 0, policy), base


def test_intervals_hold_as_often_as_they_say():
    """With no difference the interval has 0 in it, and a loss of the margin is called none, about as often as it should."""
    rng = np.random.default_rng(1)
    found = [compare(*answers(rng, 8, 150)) for _ in range(100)]
    assert np.mean([one.low <= 0 <= one.high for one in found]) > 0.9
    wrong = [compare(*answers(rng, 8, 150, lost=5.0)).no_worse_than(5.0) for _ in range(100)]
    assert np.mean(wrong) < 0.12


def test_the_least_difference_is_mostly_found():
    rng = np.random.default_rng(2)
    least = np.mean([compare(*answers(rng, 8, 150)).least for _ in range(20)])
    found = np.mean([compare(*answers(rng, 8, 150, lost=least)).high < 0 for _ in range(80)])
    assert 0.6 < found < 0.97


def test_equal_runs_differ_by_nothing():
    right = np.random.default_rng(3).uniform(size=(3, 50)) < 0.7
    one = compare(right, right)
    assert (one.difference, one.low, one.high, one.worst, one.least, one.gained, one.lost) == (0, 0, 0, 0, 0, 0, 0)
    assert one.no_worse_than(0.1)


def test_differences_are_counted_by_answer():
    base = np.array([[1, 1, 0, 0], [1, 0, 0, 1]], bool)
    policy = np.array([[1, 0, 1, 0], [0, 0, 0, 1]], bool)
    one = compare(policy, base)
    assert (one.gained, one.lost, one.difference) == (1, 2, -12.5)


def test_components_are_those_of_the_simulation():
    """Standard errors that the components give are those over many repetitions, and the margin's with the seeds asked for."""
    rng = np.random.default_rng(4)
    means, errors, parts = [], [], []
    for _ in range(150):
        policy, base = answers(rng, 6, 300, by_seed=1.5)
        means.append(100 * (policy.mean() - base.mean()))
        parts.append(spread(policy, base))
        errors.append(parts[-1].error(6, 300))
    assert np.std(means, ddof=1) == pytest.approx(np.sqrt(np.mean(np.square(errors))), rel=0.15)
    seeds = parts[0].seeds_for(2.0, 20_000)
    assert parts[0].error(seeds, 20_000) * (norm.ppf(0.95) + norm.ppf(0.8)) == pytest.approx(2.0)
    assert np.isinf(parts[0].seeds_for(1e-6, 300))


@pytest.mark.parametrize("shapes", [((1, 5), (1, 5)), ((3, 5), (3, 6)), ((3, 1), (3, 1))])
def test_what_cannot_be_paired(shapes):
    with pytest.raises(UserError, match="cannot be paired: use two tables of at least 2 seeds and 2 images"):
        compare(*(np.ones(shape, bool) for shape in shapes))
