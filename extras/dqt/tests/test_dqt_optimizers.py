"""Both optimisers on an objective that numpy and scipy compute."""

import plain_dqt
import pytest
import torch
from cdu_dqt import Curves, Measure, Sgd, TableQuantizer, histogram, search
from cdu_dqt.optimizers import gradient, nearest
from cdu_tools.errors import UserError
from drawn_coefficients import CASES, drawn
from hypothesis import given, settings
from hypothesis import strategies as st


@pytest.mark.parametrize(("kind", "rate"), CASES)
@pytest.mark.parametrize("alpha", [0.01, 0.2])
def test_no_table_has_a_lower_objective_than_the_searched_one(kind, rate, alpha):
    """The whole objective, with every step of some entries in turn and with random tables."""
    measure, c = Measure(TableQuantizer.usual(kind), rate), drawn(3)
    quantizer = measure.quantizer
    curves = Curves.of(histogram(torch.from_numpy(c)), measure)
    rungs = search(curves, alpha)
    table = quantizer.table(rungs)
    rest = (alpha, quantizer.rounding.value, kind, rate)
    best = plain_dqt.objective(c, table, *rest)
    assert table[0] == 8
    assert curves.objective(rungs, alpha) == pytest.approx(best, rel=1e-12)
    for entry in (1, 20, 63):
        for step in quantizer.steps[:: 17 if kind == "div" else 1]:
            other = (*table[:entry], step, *table[entry + 1 :])
            assert plain_dqt.objective(c, other, *rest) >= best - 1e-12
    random = torch.Generator().manual_seed(0)
    for _ in range(20):
        other = quantizer.table(torch.randint(len(quantizer.steps), (64,), generator=random))
        assert plain_dqt.objective(c, (8, *other[1:]), *rest) >= best - 1e-12


def test_ends_of_alpha():
    curves = Curves.of(histogram(torch.from_numpy(drawn(3))), Measure(TableQuantizer.usual("div")))
    assert (search(curves, 1.0)[1:] == 0).all()  # only error: steps of 1
    only_rate = search(curves, 0.0)
    rates = curves.rate[torch.arange(64), only_rate]
    assert (rates[1:] == curves.rate[1:].amin(1)).all()
    for alpha in (-0.1, 1.1, float("nan")):
        with pytest.raises(UserError, match=r"alpha = .* is not allowed: use a number from 0"):
            search(curves, alpha)


@pytest.mark.parametrize(("kind", "rate"), CASES)
@settings(max_examples=8)
@given(seed=st.integers(0, 10**6), alpha=st.floats(0, 1), data=st.data())
def test_gradient_is_the_difference_of_the_whole_objective(kind, rate, seed, alpha, data):
    measure, c = Measure(TableQuantizer.usual(kind), rate), drawn(seed, 60)
    quantizer, last = measure.quantizer, len(measure.quantizer.steps) - 1
    rungs = data.draw(st.lists(st.sampled_from((0, 1, 4, last - 1, last)), min_size=64, max_size=64))
    slopes = gradient(histogram(torch.from_numpy(c)), measure, torch.tensor(rungs), alpha)
    octaves = torch.tensor(quantizer.steps, dtype=torch.float64).log2().tolist()
    for entry in (0, 7, 33, 63):
        finer, coarser = max(rungs[entry] - 1, 0), min(rungs[entry] + 1, last)
        values = []
        for rung in (finer, coarser):
            table = quantizer.table(torch.tensor([*rungs[:entry], rung, *rungs[entry + 1 :]]))
            # The mean over 64 coefficients: a slope is that of an entry's own part.
            values.append(64 * plain_dqt.objective(c, table, alpha, quantizer.rounding.value, kind, rate))
        expected = (values[1] - values[0]) / (octaves[coarser] - octaves[finer])
        assert float(slopes[entry]) == pytest.approx(expected, rel=1e-9, abs=1e-7)


@pytest.mark.parametrize(("kind", "rate"), CASES)
def test_sgd_comes_near_the_exact_optimum(kind, rate):
    measure, c = Measure(TableQuantizer.usual(kind), rate), torch.from_numpy(drawn(4, 1500, largest=40)[2:])
    quantizer, alpha = measure.quantizer, 0.02
    curves = Curves.of(histogram(c), measure)
    best = curves.objective(search(curves, alpha), alpha)
    start = curves.objective(quantizer.rungs((8,) * 64), alpha)
    sgd = Sgd(steps=60, batch=500)
    rungs = sgd(c, measure, alpha)
    assert quantizer.table(rungs)[0] == 8
    assert best <= curves.objective(rungs, alpha) < best + 0.2 * (start - best)
    if kind == "shift":
        assert torch.equal(rungs, sgd(c, measure, alpha))  # repeats from its seed


def test_nearest_rungs_and_settings_of_sgd():
    ladder = torch.tensor([1.0, 2, 4, 8])
    assert nearest(ladder, torch.tensor([0.0, 2.9, 3.1, 100])).tolist() == [0, 1, 2, 3]
    for wrong in ({"steps": 0}, {"batch": 0}, {"learning_rate": 0.0}):
        with pytest.raises(UserError, match="SGD with"):
            Sgd(**wrong)
