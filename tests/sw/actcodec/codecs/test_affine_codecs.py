"""Choices of the encoder in the affine modes: scales, bits, seeds; BLPA against the paper's formula."""

from itertools import product

import actcodec
import pytest
import torch
from actcodec.codecs.tensor_seeds import TensorSeeds
from actcodec.golden.codes import unpack_codes
from cdu_spec import UserError
from cdu_spec.affine import CODE_BITS
from hypothesis import given, settings
from hypothesis import strategies as st

STOCHASTIC = ["division", "actnn", "autoquant", "autoquantz", "division-float", "actnn-float", "actnn-sample"]
shapes = st.tuples(st.integers(1, 3), st.integers(1, 4), st.integers(7, 20), st.integers(7, 40))


def maps(shape, seed, kind="conv"):
    random = torch.Generator().manual_seed(seed)
    x = torch.randn(shape, generator=random)
    smooth = torch.nn.functional.avg_pool2d(x, 3, 1, 1) * 2 + 0.5 * x
    scale = 10.0 ** torch.randint(-3, 4, (1, shape[1], 1, 1), generator=random)
    x = (smooth + torch.randn(1, shape[1], 1, 1, generator=random)) * scale
    return x.relu() if kind == "relu" else x


def channel_step(packed):
    """Return the step of each channel in units of the values, and the multipliers."""
    return 2.0**packed.header.how.step_log2 * packed.reciprocals.double(), 1 / packed.reciprocals.double()


@pytest.mark.parametrize("bits", CODE_BITS)
@settings(max_examples=25)
@given(shapes, st.integers(0, 2**31), st.sampled_from(["conv", "relu"]))
def test_division_error_is_a_step_where_blocks_belong_to_a_channel(bits, shape, seed, kind):
    x = maps((shape[0], shape[1], shape[2] // 8 * 8 + 8, shape[3]), seed, kind)
    packed = actcodec.codec("division", bits=bits, range="channel", seed=seed).compress(x)
    step, k = channel_step(packed)
    error = (packed.decompress().double() - x.double()).abs().amax((0, 2, 3))
    # Two units are allowed for the rounding of value and mean.
    assert (error <= step + 2 / k).all()
    assert (x.double().abs().amax((0, 2, 3)) * k <= 32767.5).all()


@pytest.mark.parametrize("bits", CODE_BITS)
def test_division_scales_are_as_large_as_allowed(bits):
    """Check that the largest value or residual uses the whole range, up to the 24 bits of the scale."""
    x = maps((2, 6, 16, 24), 3)
    packed = actcodec.codec("division", bits=bits, range="channel", scale_bits=24).compress(x)
    _, k = channel_step(packed)
    blocks = x.double().view(2, 6, 2, 8, 3, 8)
    residual = (blocks - blocks.mean((3, 5), keepdim=True)).abs().amax((0, 2, 3, 4, 5))
    half = (2**bits - 1) * 2**packed.header.how.step_log2 / 2
    use = torch.maximum(residual * k / half, x.double().abs().amax((0, 2, 3)) * k / 32767)
    assert ((use > 0.999) & (use < 1.001)).all()


def test_division_may_saturate_the_largest_residuals():
    x = maps((4, 8, 16, 24), 3)
    errors = []
    for reach in (1.0, 2.0):
        packed = actcodec.codec("division", range="channel", S=reach).compress(x)
        errors.append((packed.decompress() - x).square().mean((0, 2, 3)))
    assert (errors[1] < errors[0]).all()
    with pytest.raises(UserError, match="S = 0 is not allowed"):
        actcodec.codec("division", S=0)


def test_division_of_maps_that_share_blocks():
    """Check that scales of channels that share blocks are approximated and hardly a value saturates."""
    x = maps((4, 16, 14, 14), 5)
    packed = actcodec.codec("division", bits=8, range="channel", rounding="nearest").compress(x)
    step, k = channel_step(packed)
    error = (packed.decompress().double() - x.double()).abs()
    assert (error > (step / 2 + 2 / k).view(1, -1, 1, 1)).double().mean() < 0.01


@pytest.mark.parametrize("name", ["division", "actnn"])
@pytest.mark.parametrize("bits", CODE_BITS)
def test_found_ranges_need_no_more_than_a_step(name, bits):
    x = maps((2, 4, 16, 32), 8)
    options = {"range": "block"} if name == "division" else {}
    y = actcodec.codec(name, bits=bits, **options).compress(x).decompress().double()
    if name == "actnn":
        groups, back = x.double().reshape(-1, 256), y.reshape(-1, 256)
    else:
        cut = (2, 4, 2, 8, 4, 8)
        groups = x.double().reshape(cut).transpose(3, 4).reshape(-1, 64)
        back = y.reshape(cut).transpose(3, 4).reshape(-1, 64)
    spread = groups.amax(1) - groups.amin(1)
    unit = x.abs().max().double() / 32767 * 1.01
    assert ((back - groups).abs().amax(1) <= (spread / (2**bits - 1) + 3 * unit) * (1 + 1 / 64)).all()


@pytest.mark.parametrize("name", ["autoquant", "autoquantz"])
@settings(max_examples=30)
@given(shapes, st.integers(0, 2**31), st.floats(1e-4, 2.0), st.sampled_from(["conv", "relu"]))
def test_error_bound_is_kept_with_the_fewest_bits(name, shape, seed, relative, kind):
    """Check that nearest rounding keeps the bound, half a step, and stochastic rounding twice that.

    The rounding to 16 bits comes on top. If 8 bits are too few, the error may be larger.
    """
    x = maps(shape, seed, kind)
    largest = x.abs().amax((0, 2, 3))
    bound = relative * largest.clamp_min(1e-3)
    for rounding, factor in (("nearest", 1.0), ("stochastic", 2.0)):
        packed = actcodec.codec(name, error_bound=bound, rounding=rounding, scale_bits=24).compress(x)
        bits = packed.header.how.bits
        above, below = x.amax((0, 2, 3)).clamp_min(0), -x.amin((0, 2, 3)).clamp_max(0)

        def enough(bits, above=above, below=below):
            codes = 2 ** (bits - 1)
            return bool(((above / (2 * bound) <= codes - 1) & (below / (2 * bound) <= codes)).all())

        assert bits == next((b for b in CODE_BITS if enough(b)), 8)
        if enough(bits):
            error = (packed.decompress() - x).abs().amax((0, 2, 3))
            unit = packed.reciprocals.double()  # unit of the 16-bit integers, to which values are rounded first
            assert (error <= factor * bound * 1.0001 + 0.51 * unit).all()


@pytest.mark.parametrize("bits", [2, 4, 8])
def test_autoquant_saturates_nowhere(bits):
    x = maps((2, 5, 9, 9), 4)
    packed = actcodec.codec("autoquant", bits=bits).compress(x)
    step, k = channel_step(packed)
    assert ((packed.decompress() - x).double().abs().amax((0, 2, 3)) <= step + 1 / k).all()


@pytest.mark.parametrize("name", ["autoquant", "autoquantz"])
@pytest.mark.parametrize("bits", CODE_BITS)
def test_autoquant_stays_within_16_bits(name, bits):
    """Check that -2**(bits-1) steps of the default width, -2**15, end at -32767."""
    packed = actcodec.codec(name, bits=bits, scale_bits=24).compress(-torch.ones(2, 8))
    assert packed.reciprocals.tolist() == [torch.tensor(1 / 32767).item()]


@pytest.mark.parametrize("bits", CODE_BITS)
@pytest.mark.parametrize("exact", [True, False])
def test_blpa_is_the_papers_formula(bits, exact):
    """Check code = Clip(floor(a 2^K / (6 gamma)) + 2^(K-1) - floor(beta 2^K / (6 gamma))), in float64.

    If 6 gamma is a power of two, all codes must be equal; else those of values that are not within a rounding error of a step.
    """
    random = torch.Generator().manual_seed(bits)
    a = (torch.randn(8, 6, 16, 16, generator=random) * 2 + torch.randn(1, 6, 1, 1, generator=random)).float()
    if exact:
        a = (a * 64).round() / 64  # many values exactly between steps
        gamma = 2.0 ** torch.tensor([-1, 0, 1, 2, 3, 4], dtype=torch.float64) / 6
    else:
        gamma = torch.rand(6, generator=random).double() + 0.5
    beta = torch.randn(6, generator=random).double()
    codec = actcodec.codec("blpa", bits=bits, gamma=gamma, beta=beta, scale_bits=24)
    packed = codec.compress(a)
    mine = unpack_codes(packed.payload.view(-1, bits), bits).view(a.shape).double()

    width, levels = (6 * gamma).view(1, -1, 1, 1), 2.0**bits
    steps, origin = a.double() * levels / width, beta.view(1, -1, 1, 1) * levels / width
    codes = (steps.floor() + levels / 2 - origin.floor()).clamp(0, levels - 1)
    sure = torch.ones_like(codes, dtype=torch.bool)
    if not exact:
        sure = ((steps - steps.round()).abs() > 1e-5) & ((origin - origin.round()).abs() > 1e-5)
        assert sure.double().mean() > 0.8
    assert torch.equal(mine[sure], codes[sure])
    values = width / levels * (codes + 0.5 - levels / 2 + origin.floor())
    assert ((packed.decompress().double() - values).abs() <= values.abs() * 2.0**-22)[sure].all()


@pytest.mark.parametrize("bits", CODE_BITS)
@given(st.integers(0, 2**31), st.floats(-2.9, 2.9))
def test_blpa_keeps_signs(bits, seed, mean):
    """Check signs where zero lies within the range, for values beyond it and the smallest values, too."""
    random = torch.Generator().manual_seed(seed)
    x = torch.randn(2, 3, 4, 8, generator=random) * 3 + mean
    x.view(-1)[:6] = torch.tensor([0.0, -0.0, 1e-40, -1e-40, 100.0, -100.0])
    packed = actcodec.codec("blpa", bits=bits, gamma=1.0, beta=mean).compress(x)
    y = packed.decompress()
    # The range in steps is floor(beta) - 2^(bits-1) to floor(beta) + 2^(bits-1) - 1; zero has the steps -1 and 0 beside it.
    middle = int(packed.offsets[0]) >> packed.header.how.step_log2
    if abs(middle) <= 2 ** (bits - 1) - 1:
        assert torch.equal(y > 0, x >= 0)


def test_blpa_takes_its_range_from_the_tensor_or_from_the_options():
    x = maps((4, 3, 8, 8), 2)
    by_tensor = actcodec.codec("blpa", bits=8).compress(x)
    per_channel = x.double().transpose(0, 1).flatten(1)
    given_range = {"gamma": per_channel.std(1, correction=0), "beta": per_channel.mean(1)}
    assert actcodec.codec("blpa", bits=8, **given_range).compress(x).to_bytes() == by_tensor.to_bytes()
    error = (by_tensor.decompress() - x).abs().amax((0, 2, 3))
    inside = (x - x.mean((0, 2, 3), keepdim=True)).abs() <= 2.9 * x.std((0, 2, 3), keepdim=True)
    assert ((by_tensor.decompress() - x).abs() <= 6 * x.std((0, 2, 3), keepdim=True) / 256)[inside].all()
    assert error.shape == (3,)


def raised_gamma(gamma, beta, bits, step_log2):
    """Return half the width of the range, by which the offset has 16 bits, over three."""
    return max(gamma, abs(beta) * 2.0**bits / (6 * max(32767 // 2**step_log2, 1)))


@pytest.mark.parametrize("scale_bits", [8, 24])
@pytest.mark.parametrize(("bits", "step_log2"), [(bits, step) for bits in CODE_BITS for step in range(17 - bits)])
def test_blpa_decodes_its_range_with_every_step(bits, step_log2, scale_bits):
    """Check means of both signs, beyond the range around zero or within it, with errors of half a step of the page's rule."""
    for beta, gamma in product((0.0, 1.0, -1.0, 3e4, -(2.0**-20), 1e30, 0.37), (0.0, 2.0**-30, 0.25, 1.0, 1e5)):
        width = raised_gamma(gamma, beta, bits, step_log2)
        x = torch.tensor([beta, beta - 2.9 * width, beta + 0.5 * width * (bits > 1)]).view(1, 1, 3).repeat(1, 1, 3)
        codec = actcodec.codec("blpa", bits=bits, step_log2=step_log2, gamma=gamma, beta=beta, scale_bits=scale_bits)
        packed = actcodec.from_bytes(codec.compress(x).to_bytes())
        assert -(2**15) <= int(packed.offsets[0]) < 2**15
        step = 6 * width / 2**bits
        # The middle of a step of one integer is rounded down, and a multiplier to its bits.
        allowed = step * (1 if step_log2 == 0 else 0.5) * (1 + 2.0 ** (2 - scale_bits)) + x.abs() * 2.0**-22
        assert ((packed.decompress() - x).abs() <= allowed).all(), (beta, gamma)


@pytest.mark.parametrize("step_log2", [0, 1, 8])
@pytest.mark.parametrize("bits", CODE_BITS)
@pytest.mark.parametrize("zero", [0.0, -0.0])
def test_blpa_keeps_channels_of_zeros(bits, step_log2, zero):
    """Check channels of zeros beside other channels, too, and with rows that end in padding."""
    codec = actcodec.codec("blpa", bits=bits, step_log2=step_log2)
    x = torch.full((2, 3, 5, 7), zero)
    assert not codec.compress(x).decompress().any()
    x[:, 1] = maps((2, 1, 5, 7), 1)[:, 0]
    y = codec.compress(x).decompress()
    assert not y[:, ::2].any()
    assert y[:, 1].any()


@pytest.mark.parametrize("name", STOCHASTIC)
def test_calls_draw_different_numbers_and_runs_repeat(name):
    x = maps((2, 3, 16, 16), 1)
    values = [[codec.compress(x).decompress() for _ in range(3)] for codec in (actcodec.codec(name, bits=2) for _ in range(2))]
    assert all(torch.equal(a, b) for a, b in zip(*values, strict=True))
    assert not torch.equal(values[0][0], values[0][1])
    assert not torch.equal(values[0][1], values[0][2])
    codec = actcodec.codec(name, bits=2, seed=1)
    first = codec.compress(x).decompress()
    assert not torch.equal(first, values[0][0])
    codec.restart(5)
    run = codec.compress(x).decompress()
    assert not torch.equal(run, first)
    codec.restart(5)
    assert torch.equal(codec.compress(x).decompress(), run)
    nearest = actcodec.codec(name, bits=2, rounding="nearest")
    assert torch.equal(nearest.compress(x).decompress(), nearest.compress(x).decompress())


def test_seeds_of_tensors_do_not_repeat():
    seeds = TensorSeeds(3, 6)
    drawn = [seeds.next() for _ in range(20000)]
    assert len(set(drawn)) == len(drawn)
    assert all(0 <= seed < 2**32 for seed in drawn)
    others = {(seed, salt): TensorSeeds(seed, salt).next() for seed in range(50) for salt in range(12)}
    assert len(set(others.values())) == len(others)


@pytest.mark.parametrize("name", STOCHASTIC)
def test_reconstruction_is_unbiased(name):
    """Check that each value's mean error over 60 tensors, and the overall mean, are within five deviations of zero."""
    x = maps((2, 2, 16, 16), 9)
    codec = actcodec.codec(name, bits=4)
    draws = torch.stack([codec.compress(x).decompress().double() for _ in range(60)])
    error = draws.mean(0) - x.double()
    deviation = draws.std(0) / 60**0.5
    moved = deviation > 0
    z = (error / deviation)[moved]
    assert moved.double().mean() > 0.5
    # Rounding to 16-bit integers and to 16-bit parameters leaves systematic errors: a small part of a step.
    assert abs(z.mean()) < 0.15
    assert z.square().mean() < 1.6


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("division", {"bits": 3}, "bits = 3 is not allowed: use 1, 2, 4, 8"),
        ("actnn", {"bits": True}, "bits = True"),
        ("division", {"range": "map"}, "range = 'map' is not allowed: use channel or block"),
        ("division", {"rounding": "up"}, "rounding = 'up' is not allowed: use stochastic or nearest"),
        ("division", {"step_log2": 0, "range": "channel"}, "use 1 or more"),
        ("division", {"S": 1.5}, "S = 1.5 goes with range = channel"),
        ("division", {"step_log2": 15, "range": "channel"}, "step_log2 = 15 is not allowed with 2 bits: use 0 to 14"),
        ("division", {"step_log2": 5}, "the step of a block is found"),
        ("actnn", {"seed": -1}, "seed = -1 is not allowed: use 0 to 4294967295"),
        ("actnn", {"step_log2": 1}, "codec 'actnn' has no option 'step_log2': use bits, rounding"),
        ("blpa", {"gamma": -1.0}, "gamma = -1.0 is not allowed: use finite numbers and not negative"),
        ("blpa", {"beta": float("nan")}, "beta = nan is not allowed: use finite numbers"),
        ("blpa", {"step_log2": 13}, "step_log2 = 13 is not allowed with 4 bits: use 0 to 12"),
        ("autoquant", {"error_bound": 0.0}, "error_bound = 0.0 is not allowed: use positive"),
        ("autoquant", {"error_bound": 0.1, "step_log2": 3}, "exclude each other"),
        ("autoquantz", {"scale_bits": 9}, "scale_bits = 9"),
        ("division-float", {"half": "fp8"}, "half = 'fp8' is not allowed: use bf16 or fp16"),
        ("actnn-float", {"rounding": "up"}, "rounding = 'up'"),
    ],
)
def test_bad_options(name, options, message):
    with pytest.raises(UserError, match=message):
        actcodec.codec(name, **options)


@pytest.mark.parametrize(("name", "option"), [("blpa", "gamma"), ("blpa", "beta"), ("autoquant", "error_bound")])
def test_numbers_per_channel_must_be_as_many(name, option):
    codec = actcodec.codec(name, **{option: torch.ones(4)})
    with pytest.raises(UserError, match=f"{option} has 4 numbers: use one, or one for each of 3 channels"):
        codec.compress(torch.ones(1, 3, 8, 8))


def test_maps_that_policies_give_division():
    codec = actcodec.codec("division")
    assert all(codec.fits(shape) for shape in [(1, 1, 7, 7), (2, 3, 56, 56)])
    assert not any(codec.fits(shape) for shape in [(8,), (8, 8), (1, 8, 8), (1, 8, 8, 6), (1, 6, 1, 64)])
