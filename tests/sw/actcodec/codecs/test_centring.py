"""Channels get centres exactly where they are far from zero, also just beyond the limit."""

import pytest
import torch
from actcodec.codecs.centring import FAR, Centres


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
