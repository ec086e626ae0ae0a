"""First pass of mode division: statistics of blocks against numpy, and the scales that follow from them."""

import numpy as np
import pytest
import torch
from actcodec.backends.job import beats_in, compression_job
from actcodec.backends.torch_backend import TorchBackend
from actcodec.codecs.affine.affine_scales import channel_ranges, division_scales, ranged_scales
from actcodec.golden import division
from actcodec.golden.sfpr import rounded_scales
from cdu_spec import UserError
from cdu_spec.affine import AffineSettings
from cdu_spec.bitstream import BitstreamError, Header
from cdu_spec.matrix_view import MatrixView
from cdu_spec.modes import Dtype, Mode
from hypothesis import given, settings
from hypothesis import strategies as st

FIRST_PASS = AffineSettings(statistics=True)
shapes = st.tuples(st.integers(1, 3), st.integers(1, 4), st.integers(7, 20), st.integers(7, 40))


def maps(shape, seed):
    random = torch.Generator().manual_seed(seed)
    x = torch.randn(shape, generator=random)
    scale = 10.0 ** torch.randint(-3, 4, (1, shape[1], 1, 1), generator=random)
    return (torch.nn.functional.avg_pool2d(x, 3, 1, 1) * 2 + torch.randn(1, shape[1], 1, 1, generator=random)) * scale


def first_pass(x, k):
    view = MatrixView.of(x.shape, Mode.DIVISION)
    job = compression_job(view, Dtype.FP32, k, how=FIRST_PASS)
    payload = TorchBackend().compress(job, beats_in(x, view))
    assert torch.equal(payload, TorchBackend().compress_tensor(x, view, job))
    assert view.payload_bounds(Dtype.FP32, FIRST_PASS) == (payload.numel(), payload.numel())
    return view, division.statistics(payload, view.blocks)


def wide_scales(x, room=1.5):
    return rounded_scales(32767 / (room * x.abs().amax((0, 2, 3)).double()), 8)


@settings(max_examples=40)
@given(shapes, st.integers(0, 2**31))
def test_statistics_are_those_of_numpy(shape, seed):
    """Check statistics of blocks in payload order, for the matrix padded with its last values."""
    n, c, h, w = shape
    x = maps(shape, seed)
    k = wide_scales(x)
    scaled = np.rint(x.double().numpy() * k.double().numpy()[:, None, None]).reshape(n * c * h, w)
    padded = np.pad(scaled, ((0, -len(scaled) % 8), (0, -w % 8)), mode="edge")
    strips, blocks = len(padded) // 8, padded.shape[1] // 8
    grid = padded.reshape(strips, 8, blocks, 8).transpose(0, 2, 1, 3).reshape(-1, 64)
    expected = np.stack((np.floor(grid.mean(1) + 0.5), grid.min(1), grid.max(1)), 1)
    assert np.array_equal(first_pass(x, k)[1].numpy(), expected)


@settings(max_examples=40)
@given(shapes, st.integers(0, 2**31))
def test_bounds_hold_for_every_value(shape, seed):
    """Check least, greatest and distance from the mean; they are nearly reached where blocks belong to one channel."""
    x = maps(shape, seed)
    k = wide_scales(x)
    view, found = first_pass(x, k)
    ranges = channel_ranges(found, view, k)
    exact, unit = x.double(), 1 / k.double()
    assert (ranges.least <= exact.amin((0, 2, 3))).all()
    assert (ranges.greatest >= exact.amax((0, 2, 3))).all()
    if shape[2] % 8 or shape[3] % 8:
        return
    n, c, h, w = shape
    tiled = exact.view(n, c, h // 8, 8, w // 8, 8)
    residual = (tiled - tiled.mean((3, 5), keepdim=True)).abs().amax((0, 2, 3, 4, 5))
    assert (ranges.residual >= residual).all()
    assert (ranges.residual <= residual + 2 * unit).all()
    assert (ranges.greatest <= exact.amax((0, 2, 3)) + unit).all()
    assert (ranges.least >= exact.amin((0, 2, 3)) - unit).all()


@pytest.mark.parametrize("bits", [1, 2, 4, 8])
def test_scales_of_two_passes(bits):
    """Check that scales are within a permille of those from all values, and never beyond them."""
    x = maps((2, 6, 16, 24), 3)
    view, found = first_pass(x, wide_scales(x))
    options = AffineSettings(bits, 12 - bits)
    two_passes = ranged_scales(channel_ranges(found, view, wide_scales(x)), options, 1.0)
    at_hand = division_scales(x, view, x.abs().amax((0, 2, 3)).double(), options, 1.0)
    ratio = two_passes / at_hand
    assert (ratio <= 1).all()
    assert (ratio > 0.999).all()


def test_a_first_pass_that_saturates_says_so():
    x = maps((1, 3, 8, 8), 1)
    k = wide_scales(x)
    k[1] *= 4
    view, found = first_pass(x, k)
    with pytest.raises(UserError, match="channel 1 reaches the end of 16 bits"):
        channel_ranges(found, view, k)


def test_statistics_are_no_stream():
    with pytest.raises(UserError, match="statistics are no stream"):
        Header(Mode.DIVISION, Dtype.FP32, (1, 1, 8, 8), 6, how=FIRST_PASS)
    with pytest.raises(UserError, match="statistics come from mode division"):
        compression_job(MatrixView.of((256,), Mode.ACTNN), Dtype.FP32, torch.ones(1), how=FIRST_PASS)
    with pytest.raises(BitstreamError, match="7 payload bytes are not the statistics of 1 block"):
        division.statistics(torch.zeros(7, dtype=torch.uint8), 1)
