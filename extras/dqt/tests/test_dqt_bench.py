"""The bench measures codes and reconstructions of the codecs themselves."""

import actcodec
import pytest
import torch
from actcodec.study import data
from actcodec.study.activations import record_training
from actcodec.study.experiment import Recipe
from cdu_dqt import RateBench, TableQuantizer
from cdu_spec import dqt
from cdu_spec.dct import LEAST
from cdu_spec.rounding import Rounding


@pytest.mark.parametrize("rounding", list(Rounding))
@pytest.mark.parametrize(("kind", "codec"), [("div", "jpeg-base"), ("shift", "jpeg-act")])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_bytes_and_errors_are_the_codecs(maps, kind, codec, rounding, dtype):
    maps = [x.to(dtype) for x in maps]
    random = torch.Generator().manual_seed(1)
    table = tuple(torch.randint(1, 256, (64,), generator=random).tolist())
    for S in (0.7, 1.125):  # noqa: N806
        bench = RateBench(maps, S)
        for one_table in ("optH", "optsL", table):
            one = actcodec.codec(codec, dqt=one_table, S=S, rounding=rounding.value, **LEAST._asdict())
            size, error = 0, 0.0
            for x in maps:
                packed = one.compress(x)
                size += len(packed.to_bytes())
                difference = x.double() - one.decompress(packed).double()
                error += float(difference.norm() / x.double().norm()) / len(maps)
            point = bench(TableQuantizer(kind, rounding), one_table)
            assert point.bytes_per_value == size / sum(x.numel() for x in maps)
            assert point.relative_error == pytest.approx(error, rel=1e-12)


def test_zeros():
    point = RateBench([torch.zeros(1, 1, 8, 8)], 1.0)(TableQuantizer.usual("div"), "optL")
    assert point.relative_error == point.squared_error == 0.0


def test_the_searched_table_that_is_shipped():
    """It was found on CIFAR-10; these are digits.

    Along any sweep of tables error falls faster than bytes grow: with fewer bytes a smaller product means less error at equal
    bytes.
    """
    assert dqt.SEARCHS_H[0] == dqt.DC_DIVISOR
    assert all(1 << shift == step for shift, step in zip(dqt.shifts("searchsH"), dqt.SEARCHS_H, strict=True))
    recorded = record_training(Recipe(width=8, epochs=1, batch=64), data.load("digits", limit=64), 7)
    bench, shift = RateBench([one.values for one in recorded], 1.125), TableQuantizer.usual("shift")
    ours, published = bench(shift, "searchsH"), bench(shift, "optsH")
    uniform = [bench(shift, (8, *[step] * 63)) for step in (16, 32)]
    products = [point.bytes_per_value * point.relative_error for point in (*uniform, ours, published)]
    assert products[0] < products[1]
    assert ours.bytes_per_value < published.bytes_per_value
    assert products[2] < 0.95 * products[3]
