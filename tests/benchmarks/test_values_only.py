"""benchmarks/values_only.py: codecs by their values alone have the results of the codecs."""

import actcodec
import pytest
import torch
from torch.nn import functional as F
from values_only import values_only

STEPPED = (("blpa-coded", {"bits": 6}), ("feature-coded", {"bits": 4}), ("feature-coded", {"bits": 3, "steps_of": "token"}))
SHAPES = ((8, 64, 96), (512, 96), (4, 4, 32, 24), (7, 13))
KINDS = {"dense": lambda x: x, "gelu": F.gelu, "softmax": lambda x: x.softmax(-1)}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(("name", "options"), [("nvfp4", {}), ("mxint8", {}), *STEPPED])
def test_values_are_those_of_the_codec(name, options, shape, kind):
    torch.manual_seed(0)
    x = KINDS[kind](3 * torch.randn(shape) * torch.rand(shape[-1]))
    codec, values = actcodec.codec(name, **options), values_only(name, **options)
    wanted, found = codec.decompress(codec.compress(x)), values.decompress(values.compress(x))
    if (name, options) in STEPPED:
        torch.testing.assert_close(found, wanted, rtol=0, atol=1e-5 * float(wanted.abs().max()))
    else:
        assert torch.equal(found, wanted)
