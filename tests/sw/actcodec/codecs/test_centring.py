"""Channels get centres exactly where they are far from zero, also just beyond the limit."""

import actcodec
import pytest
import torch
from actcodec.codecs.centring import FAR, CentredForm, Centres, compress_centred, decompress_centred
from actcodec.codecs.codec import SfprCodec


def with_ratio(shape, axes, ratio, seed):
    """Numbers whose means along some axes are ``ratio`` times their standard deviation, with either sign."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(shape, generator=generator, dtype=torch.float64)
    x = (x - x.mean(axes, keepdim=True)) / x.std(axes, correction=0, keepdim=True)
    sign = torch.randint(2, x.mean(axes, keepdim=True).shape, generator=generator) * 2 - 1
    return (x + sign * ratio).to(torch.float32)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(
    ("shape", "axes"),
    [((4, 6, 8, 8), (0, 2, 3)), ((4, 6, 8, 8), (2, 3)), ((1, 5, 64), (0, 2)), ((64, 6), (0,)), ((6, 64), (1,))],
    ids=["channels", "maps", "one sample", "columns", "rows"],
)
def test_the_limit_is_where_it_is_said_to_be(shape, axes, seed):
    assert Centres.of(with_ratio(shape, axes, FAR * 1.001, seed)) is not None
    # A sign for each map spreads the channels' values; only its maps are then far from zero.
    assert Centres.of(with_ratio(shape, axes, FAR * 0.999, seed)) is None


@pytest.mark.parametrize("value", [0.0, 1.0, -3e-20, 1e19])
def test_constants_have_centres_and_zeros_have_none(value):
    centres = Centres.of(torch.full((2, 3, 64), value))
    assert (centres is None) == (value == 0.0)


@pytest.mark.parametrize("name", ["sfpr", "sfpr+zvc", "jpeg-act", "jpeg-gmc"])
def test_a_tensor_near_zero_is_compressed_at_once_to_the_same_bytes(name):
    codec = actcodec.codec(name, backend="native")
    x = torch.randn(3, 4, 16, 16, generator=torch.Generator().manual_seed(0))
    at_once = codec.compress_near_zero(x)
    assert at_once.to_bytes() == codec.compress(x).to_bytes() == actcodec.codec(name).compress(x).to_bytes()
    assert codec.compress_near_zero(x + 100) is None
    assert isinstance(compress_centred(x + 100, codec), CentredForm)
    assert actcodec.codec(name).compress_near_zero(x) is None, "the golden model has no kernels"


@pytest.mark.parametrize("shape", [(40, 16), (64,)])
def test_a_tensor_whose_scales_are_not_those_of_its_channels_has_no_form_at_once(shape):
    """Columns or rows of it may be far from zero while the whole tensor, which has one scale, is not."""
    assert actcodec.codec("sfpr", backend="native").compress_near_zero(torch.randn(shape)) is None


def test_channels_that_share_a_scale_are_seen_one_by_one():
    codec, x = actcodec.codec("sfpr", backend="native"), torch.randn(16, 4, 3)
    at_once = codec.compress_near_zero(x)
    assert len(at_once.reciprocals) == 1
    assert at_once.to_bytes() == actcodec.codec("sfpr").compress(x).to_bytes()
    x[:, 2] += 100
    assert codec.compress_near_zero(x) is None


def test_a_codec_that_compresses_in_its_own_way_is_asked():
    class Halved(SfprCodec):
        def compress(self, x):
            return super().compress(x / 2)

    codec, x = Halved(backend="native"), torch.randn(3, 4, 16, 16)
    assert decompress_centred(compress_centred(x, codec), codec).abs().max() < x.abs().max() * 0.6
