"""Tables for GMC: against the streams that jpeg-gmc writes and errors that numpy computes."""

import actcodec
import numpy as np
import plain_dqt
import pytest
import torch
from cdu_dqt import DqtSettings, RateBench, TableQuantizer, coefficients
from cdu_dqt.gmc_search import GmcBlocks, descend
from cdu_spec.modes import Coder
from cdu_spec.rounding import Rounding
from cdu_tools.errors import UserError

S = 1.125
STARTS = ("uniform-8", "uniform-16", "uniform-32", "uniform-64", "optL", "optH")


def quantizer(rounding="trunc", point=3):
    return TableQuantizer("shift", Rounding(rounding), point, Coder.GMC)


def written(maps, table, rounding, point):
    """Bytes of the payloads of jpeg-gmc."""
    codec = actcodec.codec("jpeg-gmc", dqt=table, S=S, rounding=rounding, rec=point / 8)
    return sum(codec.compress(x).payload.numel() for x in maps)


def objective(maps, table, alpha, rounding="trunc", point=3):
    """Bits of the streams and squared error of the coefficients, without the package's arithmetic."""
    c = coefficients(maps, S).numpy().astype(np.int64)
    error = (plain_dqt.restored(c, table, rounding, "shift", point) - c) ** 2
    return (1 - alpha) * 8 * written(maps, table, rounding, point) / c.size + alpha * error.mean()


@pytest.mark.parametrize(("rounding", "point"), [("trunc", 3), ("half_away", 0)])
def test_rate_and_error_are_those_of_the_codec(maps, rounding, point):
    one = quantizer(rounding, point)
    blocks = GmcBlocks.of(coefficients(maps, S), one)
    for table in ("uniform-1", "optH", "uniform-128"):
        steps = one.steps_of(table)
        rate, error = blocks.at(one.rungs(steps))
        assert rate == pytest.approx(8 / blocks.coefficients.numel() * written(maps, table, rounding, point), rel=1e-15)
        expected = (1 - 0.3) * rate + 0.3 * error
        assert objective(maps, steps, 0.3, rounding, point) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("alpha", [0.005, 0.03])
def test_no_neighbour_and_no_known_table_is_better(maps, alpha):
    maps = maps[:2]
    one = quantizer()
    starts = [one.rungs(one.steps_of(name)) for name in STARTS]
    blocks = GmcBlocks.of(coefficients(maps, S), one)
    rungs = descend(blocks, alpha, starts)
    table = one.table(rungs)
    best = objective(maps, table, alpha)
    assert blocks.objective(rungs, alpha) == pytest.approx(best, rel=1e-12)
    assert all(best <= objective(maps, one.steps_of(name), alpha) + 1e-12 for name in STARTS)
    assert len(set(table)) > 1
    for entry in range(64):
        for step in (table[entry] // 2, 2 * table[entry]):
            if 8 <= step <= 128:
                other = (*table[:entry], step, *table[entry + 1 :])
                assert objective(maps, other, alpha) >= best - 1e-12
    assert torch.equal(descend(blocks, alpha, starts), rungs)


def test_ends_of_alpha_and_the_bound_of_dc(maps):
    one = quantizer()
    blocks = GmcBlocks.of(coefficients(maps, S), one)
    start = one.rungs(one.steps_of("uniform-16"))
    finest = one.table(descend(blocks, 1.0, [start]))
    assert finest[0] == 8
    assert objective(maps, finest, 1.0) < objective(maps, one.steps_of("uniform-16"), 1.0)
    assert one.table(start) == (16,) * 64  # a start is not changed
    with pytest.raises(UserError, match=r"alpha = -1 is not allowed: use a number from 0"):
        descend(blocks, -1, [start])


def test_a_sample_is_spread_over_all_blocks(maps):
    c = coefficients(maps, S)
    chosen = GmcBlocks.of(c, quantizer(), 5).coefficients
    assert chosen.tolist() == c[[0, len(c) // 5, 2 * len(c) // 5, 3 * len(c) // 5, 4 * len(c) // 5]].tolist()


@pytest.mark.parametrize(("rounding", "point"), [("trunc", 3), ("trunc", 0), ("half_away", 1)])
def test_the_bench_measures_whole_streams(maps, rounding, point):
    point_of_bench = RateBench(maps, S)(quantizer(rounding, point), "uniform-16")
    codec = actcodec.codec("jpeg-gmc", S=S, rounding=rounding, rec=point / 8)
    packed = [codec.compress(x) for x in maps]
    assert point_of_bench.bytes_per_value == sum(len(one.to_bytes()) for one in packed) / sum(x.numel() for x in maps)
    errors = [float((x - one.decompress()).double().norm() / x.double().norm()) for x, one in zip(maps, packed, strict=True)]
    assert point_of_bench.relative_error == pytest.approx(np.mean(errors), rel=1e-6)


def test_settings_without_more_are_those_of_the_codec():
    settings = DqtSettings(0.02, "shift", "gmc")
    assert (settings.quantizer.point, settings.quantizer.rounding.value, settings.quantizer.codec) == (3, "trunc", "jpeg-gmc")
    assert DqtSettings(0.02, "shift", "zvc").quantizer == TableQuantizer.usual("shift")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"kind": "div", "rate": "gmc"}, "rate 'gmc' goes with kind 'shift'"),
        ({"kind": "div", "rec": 0.25}, "a reconstruction point goes with kind 'shift'"),
        ({"kind": "shift", "rate": "gmc", "optimizer": "sgd"}, "optimizer 'sgd' does not go with rate 'gmc'"),
        ({"kind": "shift", "rate": "bits"}, "unknown rate 'bits': use entropy, zvc, gmc"),
        ({"kind": "shift", "rec": 0.3}, "rec = 0.3 is not allowed: use 0, 0.125"),
    ],
)
def test_what_is_not_possible(settings, message):
    with pytest.raises(UserError, match=message):
        DqtSettings(0.1, **settings)
