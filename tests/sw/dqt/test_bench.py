"""What the bench measures is what the codecs do."""

import actcodec
import pytest
import torch
from actcodec.dqt import Bench, Quantizer
from cdu_spec.rounding import Rounding


@pytest.mark.parametrize("rounding", list(Rounding))
@pytest.mark.parametrize(("kind", "codec"), [("div", "jpeg-base"), ("shift", "jpeg-act")])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_bytes_and_errors_are_the_codecs(maps, kind, codec, rounding, dtype):
    maps = [x.to(dtype) for x in maps]
    random = torch.Generator().manual_seed(1)
    table = tuple(torch.randint(1, 256, (64,), generator=random).tolist())
    for S in (0.7, 1.125):  # noqa: N806
        bench = Bench(maps, S)
        for dqt in ("optH", "optsL", table):
            one = actcodec.codec(codec, dqt=dqt, S=S, rounding=rounding.value)
            size, error = 0, 0.0
            for x in maps:
                packed = one.compress(x)
                size += len(packed.to_bytes())
                difference = x.double() - one.decompress(packed).double()
                error += float(difference.norm() / x.double().norm()) / len(maps)
            point = bench(Quantizer(kind, rounding), dqt)
            assert point.bytes_per_value == size / sum(x.numel() for x in maps)
            assert point.relative_error == pytest.approx(error, rel=1e-12)


def test_zeros():
    point = Bench([torch.zeros(1, 1, 8, 8)], 1.0)(Quantizer.usual("div"), "optL")
    assert point.relative_error == point.squared_error == 0.0
