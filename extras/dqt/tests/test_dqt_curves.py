"""Rate and distortion against numpy, scipy's entropy and transform, and the bytes that the codecs write."""

import actcodec
import numpy as np
import plain_dqt
import pytest
import torch
from cdu_dqt import Curves, Measure, RateBench, TableQuantizer, coefficients, histogram
from cdu_dqt.curves import entropy
from cdu_spec.rounding import Rounding
from cdu_tools.errors import UserError
from drawn_coefficients import CASES, drawn
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import fft, stats


@given(st.lists(st.integers(1, 10**6) | st.just(0), min_size=1, max_size=40).filter(any))
def test_entropy_is_scipys(counts):
    found = entropy(torch.tensor([counts, counts[::-1]], dtype=torch.float64))
    assert found.numpy() == pytest.approx([stats.entropy(counts, base=2)] * 2, abs=1e-9)


@pytest.mark.parametrize("rounding", [rule.value for rule in Rounding])
@pytest.mark.parametrize(("kind", "rate"), CASES)
@settings(max_examples=10)
@given(seed=st.integers(0, 10**6), data=st.data())
def test_rate_and_distortion_of_any_table(kind, rate, rounding, seed, data):
    quantizer = TableQuantizer(kind, Rounding(rounding))
    c = drawn(seed, 40)
    rungs = data.draw(st.lists(st.integers(0, len(quantizer.steps) - 1), min_size=64, max_size=64))
    found = Measure(quantizer, rate)(histogram(torch.from_numpy(c)), torch.tensor(rungs))
    expected = plain_dqt.rate_and_error(c, quantizer.table(torch.tensor(rungs)), rounding, kind, rate)
    for mine, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(mine.numpy(), theirs, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(("kind", "rate"), CASES)
def test_curves_hold_every_rung(kind, rate):
    measure, c = Measure(TableQuantizer.usual(kind), rate), drawn(1)
    curves = Curves.of(histogram(torch.from_numpy(c)), measure)
    assert curves.rate.shape == curves.distortion.shape == (64, {"div": 255, "shift": 5}[kind])
    for rung in {0, 1, 3, len(measure.quantizer.steps) - 1}:
        step = measure.quantizer.steps[rung]
        expected = plain_dqt.rate_and_error(c, (step,) * 64, measure.quantizer.rounding.value, kind, rate)
        np.testing.assert_allclose(curves.rate[:, rung], expected[0], rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(curves.distortion[:, rung], expected[1], rtol=1e-12, atol=1e-12)


def test_histogram_counts():
    c = drawn(2)
    found = histogram(torch.from_numpy(c)).numpy()
    for i in (0, 1, 63):
        assert (found[i] == [(c[:, i] == value).sum() for value in range(-2048, 2048)]).all()


@pytest.mark.parametrize("S", [0.7, 1.125])
def test_coefficients_are_those_of_scipys_transform(maps, S):  # noqa: N803
    x = maps[0]
    k = 128 * S / x.abs().amax((0, 2, 3), keepdim=True)
    v = np.clip(np.rint((x.double() * k).numpy()), -128, 127).reshape(-1, 16)
    blocks = v.reshape(-1, 8, 2, 8).swapaxes(1, 2).reshape(-1, 8, 8)
    exact = fft.dctn(blocks, axes=(1, 2), norm="ortho").reshape(-1, 64)
    # The default unit has a multiplier of 8 significand bits, so that some integers differ; in norm little does.
    found = coefficients([x], S).numpy()
    assert found.shape == exact.shape
    assert np.linalg.norm(found - exact) < 0.02 * np.linalg.norm(exact)


def test_zvc_rate_is_what_the_codec_writes(maps):
    for table in ("optsL", "optsH", "image60"):
        quantizer = TableQuantizer.usual("shift")
        for x in maps:
            c = coefficients([x], 1.125)
            rate, _ = Measure(quantizer, "zvc")(histogram(c), quantizer.rungs(quantizer.steps_of(table)))
            payload = actcodec.codec("jpeg-act", dqt=table).compress(x).payload
            assert float(rate.sum()) * len(c) == pytest.approx(8 * payload.numel(), abs=1e-6)


@pytest.mark.parametrize("kind", ["div", "shift"])
def test_error_is_additive_but_for_the_integer_transform(maps, kind):
    """Rounding coefficients and samples adds 1/12 each; saturation can only bring values nearer to the original ones."""
    quantizer = TableQuantizer.usual(kind)
    counts, bench = histogram(coefficients(maps, 1.125)), RateBench(maps, 1.125)
    for table in ("optL", "optH", "image50"):
        _, error = Measure(quantizer)(counts, quantizer.rungs(quantizer.steps_of(table)))
        measured = bench(quantizer, table).squared_error
        assert 0.85 * float(error.mean()) < measured < 1.03 * float(error.mean()) + 1 / 6


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Measure(TableQuantizer.usual("div"), "zvc"), "rate 'zvc' goes with kind 'shift'"),
        (lambda: Measure(TableQuantizer.usual("div"), "bits"), "unknown rate 'bits': use entropy, zvc"),
        (lambda: TableQuantizer.usual("sh"), "unknown kind of table 'sh': use div, shift"),
    ],
)
def test_what_is_not_possible(make, message):
    with pytest.raises(UserError, match=message):
        make()
