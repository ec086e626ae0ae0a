"""Multipliers by a compiled kernel are the golden model's, and its quick look at channels never overlooks one far from zero."""

from functools import partial

import pytest
import torch
from actcodec.backends.job import FORMATS, Scaling, compression_job
from actcodec.backends.native.backend import NativeBackend
from actcodec.backends.native.kernels import kernels
from actcodec.backends.native.statistics import near_zero, scales_of
from actcodec.backends.torch_backend import TorchBackend
from actcodec.codecs import centring
from actcodec.golden import sfpr
from actcodec.golden.blocks import by_channel
from cdu_spec.bitstream import Header
from cdu_spec.matrix_view import MatrixView
from cdu_spec.modes import Dtype, Mode
from cdu_tools.errors import UserError


def magnitudes(dtype):
    """Magnitudes of all exponents of a format, and those next to its ends."""
    details = torch.finfo(dtype)
    drawn = torch.rand(20000, generator=torch.Generator().manual_seed(0), dtype=torch.float64) * 277 - 149
    ends = details.max * (1 - torch.arange(300, dtype=torch.float64) * details.eps / 2)
    few = torch.tensor([0.0, details.smallest_normal * details.eps], dtype=torch.float64)
    return torch.cat((torch.exp2(drawn).clamp_max(details.max).to(dtype).to(torch.float64), ends, few))


@pytest.mark.parametrize("scale_bits", [24, 11, 8])
@pytest.mark.parametrize("target", [1.0, 1.125, 0.3, 100.0])
@pytest.mark.parametrize("dtype", sfpr.FLOATS)
def test_multipliers_are_the_golden_ones(dtype, target, scale_bits):
    largest = magnitudes(dtype)
    found, golden = (scales(largest, target, scale_bits, dtype) for scales in (scales_of, sfpr.scales_of))
    assert torch.equal(found[0], golden[0])
    assert torch.equal(found[1], golden[1])


@pytest.mark.parametrize(("target", "scale_bits"), [(0.0, 24), (float("inf"), 24), (1.0, 23)])
def test_multipliers_are_refused_as_by_the_golden_model(target, scale_bits):
    with pytest.raises(UserError, match="is not allowed"):
        scales_of(torch.ones(1, dtype=torch.float64), target, scale_bits, torch.float32)


@pytest.mark.parametrize("shape", [(4, 3, 7, 9), (4, 3, 130), (600, 5), (5, 600), (1, 2, 40000), (3, 2, 3)])
@pytest.mark.parametrize("scale", [1e-38, 1e-15, 1.0, 1e18, 1e38])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_what_is_certain_agrees_with_the_exact_statistics(monkeypatch, shape, scale, dtype):
    kernels()
    generator = torch.Generator().manual_seed(1)
    certain = 0
    for ratio in (0.0, 0.5, 3.0, 7.0, 9.0, 1e4):
        offsets = torch.where(torch.rand(shape[1], generator=generator) < 0.5, ratio, 0.0)
        x = torch.randn(shape, generator=generator) + offsets.view(-1, *[1] * (len(shape) - 2))
        x = (x.clamp(-3e4, 3e4) * min(scale, 1e33 if ratio > 9 else scale)).to(dtype)
        view = (shape[0], shape[1], max(1, x[0, 0].numel())) if len(shape) > 2 else (*shape, 1)
        known = near_zero(x.view(view))
        certain += known
        with monkeypatch.context() as patch:
            patch.setattr(centring, "surely_near_zero", lambda maps: False)
            exact = centring.Centres.of(x)
        found = centring.Centres.of(x)
        assert (found is None) == (exact is None)
        assert found is None or (torch.equal(found.values, exact.values) and torch.equal(found.mask, exact.mask))
    assert certain or scale != 1.0 or shape[0] < 4, "most tensors need no exact statistics"


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 3e38, 1e-30, 1.0])
def test_nothing_is_certain_of_channels_that_may_be_far(value):
    x = torch.zeros(2, 3, 40)
    x[:, 1] = value
    assert not near_zero(x)
    assert near_zero(torch.zeros(2, 3, 40))


@pytest.mark.parametrize("shape", [(3, 4, 5, 7), (2, 3, 16), (5, 2, 3), (70,), (33, 9)])
@pytest.mark.parametrize(("target", "scale_bits"), [(1.0, 24), (1.125, 8)])
@pytest.mark.parametrize("dtype", sfpr.FLOATS)
def test_a_stream_at_once_is_that_of_single_steps(dtype, target, scale_bits, shape):
    x = (torch.randn(shape, generator=torch.Generator().manual_seed(2)) * 50).to(dtype)
    view = MatrixView.of(shape, Mode.SFPR)
    native, job = NativeBackend(), partial(compression_job, view, FORMATS[dtype])
    payload, r = native.compress_scaled(x, view, Scaling(target, scale_bits, job), near_zero=False)
    k, golden_r = sfpr.scales(by_channel(x, view), target, scale_bits)
    golden = TorchBackend().compress_tensor(x, view, job(k))
    assert torch.equal(payload, golden)
    assert torch.equal(r, golden_r)
    header = Header(Mode.SFPR, FORMATS[dtype], shape, payload.numel())
    stream = (header, (), r, payload, torch.zeros(0, dtype=torch.int16))
    assert torch.equal(native.decompress_stream(*stream), TorchBackend().decompress_stream(*stream))


@pytest.mark.parametrize("mode", [Mode.SFPR, Mode.SFPR_ZVC])
def test_other_values_and_backends_have_no_stream_at_once(mode):
    x = torch.randn(2, 3, 8, 8, generator=torch.Generator().manual_seed(3))
    view = MatrixView.of(x.shape, mode)
    rest = (view, Scaling(1.0, 24, partial(compression_job, view, Dtype.FP32)))
    native = NativeBackend()
    assert native.compress_scaled(x, *rest, near_zero=True) is not None
    assert TorchBackend().compress_scaled(x, *rest, near_zero=False) is None
    far = x + 100 * torch.arange(3).view(-1, 1, 1)
    assert native.compress_scaled(far, *rest, near_zero=False) is not None
    assert native.compress_scaled(far, *rest, near_zero=True) is None
    x[1, 1, 1, 1] = float("nan")
    assert native.compress_scaled(x, *rest, near_zero=False) is None
