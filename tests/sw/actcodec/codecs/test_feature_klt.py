"""Components of tokens: bytes and errors beside those of steps per feature, and the tensors that keep the steps."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from actcodec.codecs import codec
from actcodec.codecs.blpa.feature_coded import FeatureForm
from actcodec.codecs.blpa.feature_klt import LEAST_TOKENS, FeatureKltCodec, KltForm
from actcodec.golden.sfpr import NonFiniteError
from actcodec.testing import check_codec
from backend_cases import FLOATS, parts, same_bits
from cdu_spec import UserError

FEATURES, RANK = 48, 6


def tokens(count=4096, features=FEATURES, rank=RANK, seed=0, noise=0.03):
    """Return tokens near a plane of a few dimensions, features of different deviation and mean."""
    random = torch.Generator().manual_seed(seed)
    wide = torch.randn(count, rank, generator=random) @ torch.randn(rank, features, generator=random)
    wide += noise * torch.randn(count, features, generator=random)
    return wide * 2.0 ** torch.randn(features, generator=random) + torch.randn(features, generator=random)


def error(x, y):
    """Return the root mean square error in units of each feature's deviation."""
    rows = (y.double() - x.double()).reshape(-1, x.shape[-1])
    return float((rows / x.double().reshape(-1, x.shape[-1]).std(0)).square().mean().sqrt())


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("bits", [2.5, 4, 8])
def test_components_take_a_fraction_of_the_bytes_at_a_like_error(bits, dtype):
    """Allow what a component just below the rank that pays loses, its variance: .18 of a squared step, not 1/12."""
    x = tokens().to(dtype)
    packed, plain = codec("feature-klt", bits=bits).compress(x), codec("feature-coded", bits=bits).compress(x)
    assert isinstance(packed, KltForm)
    assert packed.nbytes < 0.5 * plain.nbytes
    y = packed.decompress()
    assert (y.shape, y.dtype) == (x.shape, x.dtype)
    coarse = 0 if dtype == torch.float32 else error(x, (x.double() * (1 + torch.finfo(dtype).eps)))
    assert error(x, y) <= (12 * 0.18) ** 0.5 * error(x, plain.decompress()) + coarse


@pytest.mark.parametrize("bits", [2, 3.5, 5, 10])
@pytest.mark.parametrize("steps_of", ["feature", "token"])
def test_errors_are_bounded(bits, steps_of):
    """Add the errors of kept components, at most .6 steps, and those of the cut, at most 1/12 of a squared step a feature."""
    x = tokens(noise=0.3)
    packed = codec("feature-klt", bits=bits, steps_of=steps_of).compress(x)
    if isinstance(packed, FeatureForm):
        pytest.skip("these steps are too wide for components")
    step, rank = float(packed.step), packed.directions.shape[1]
    bound = step * np.sqrt(0.6**2 * rank / FEATURES + 1 / 12)
    if steps_of == "token":  # all features of tokens over their own deviations share one unit
        scales = x.std(1, keepdim=True)
        deviation = (x / scales).var(0).mean().sqrt()
        found = ((packed.decompress() - x) / scales / deviation).double().square().mean().sqrt()
        assert found <= 1.1 * bound
    else:
        assert error(x, packed.decompress()) <= 1.01 * bound
    assert step == pytest.approx(6 / 2**bits)


def test_directions_are_the_principal_components_of_the_tokens():
    """Compare with numpy's singular vectors of all tokens, not of a sample, in units of deviations."""
    x = tokens(1 << 15, noise=0.01)
    packed = codec("feature-klt", bits=4).compress(x)
    deviation = x.double().std(0)
    normal = ((x.double() - x.double().mean(0)) / deviation).numpy()
    _, _, right = np.linalg.svd(normal, full_matrices=False)
    assert packed.directions.shape == (FEATURES, RANK)
    kept = (packed.directions.double() / deviation[:, None]).numpy()
    cosines = np.linalg.svd(right[:RANK] @ np.linalg.qr(kept)[0], compute_uv=False)
    assert cosines.min() > 0.9999
    np.testing.assert_allclose(packed.mean, x.mean(0), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    "x",
    [
        tokens(LEAST_TOKENS * FEATURES - 1),
        torch.randn(4096, FEATURES, generator=torch.Generator().manual_seed(1)),
        tokens().relu(),
        tokens() * 1e-30,
        tokens() * 1e30,
        torch.randn(300),
    ],
    ids=["few tokens", "no correlation", "rectified", "tiny", "huge", "vector"],
)
def test_other_tensors_are_kept_in_steps_of_features(x):
    packed, plain = codec("feature-klt").compress(x), codec("feature-coded").compress(x)
    assert isinstance(packed, FeatureForm)
    assert parts(packed) == parts(plain)
    assert torch.equal(packed.decompress() > 0, x > 0)


def test_a_token_that_the_sample_does_not_know_keeps_its_values():
    x = tokens(noise=0)
    odd = torch.zeros(FEATURES)
    odd[:2] = torch.tensor([3e3, -3e3])
    x[1] += odd  # the sample has the first of these tokens
    y = codec("feature-klt", bits=4).compress(x).decompress()
    assert (y[1] - x[1]).norm() < 0.2 * odd.norm()


@pytest.mark.parametrize("steps_of", ["feature", "token"])
def test_constant_features_and_tokens_of_zeros(steps_of):
    x = tokens()
    x[:, 3], x[:, 5], x[7], x[9] = -1.3, 0, 0, 2.0
    y = codec("feature-klt", steps_of=steps_of).compress(x).decompress()
    assert y.isfinite().all()
    if steps_of == "feature":
        assert error(x[10:][:, [0, 1, 2, 4, 6]], y[10:][:, [0, 1, 2, 4, 6]]) < 0.2
    constant = torch.full((4096, FEATURES), -2.5)
    packed = codec("feature-klt", steps_of=steps_of).compress(constant)
    torch.testing.assert_close(packed.decompress(), constant, rtol=0.05, atol=0)


def test_heads_are_the_features_of_a_token():
    x = tokens(2048).view(4, 512, 6, 8)
    heads = x.transpose(1, 2).contiguous()
    flat = codec("feature-klt").compress(x.flatten(2))
    packed = codec("feature-klt", heads=True).compress(heads)
    assert isinstance(packed, KltForm)
    assert parts(replace(packed, shape=(), heads=False)) == parts(replace(flat, shape=()))
    assert torch.equal(packed.decompress(), flat.decompress().view(x.shape).transpose(1, 2))
    assert packed.decompress().is_contiguous()


@pytest.mark.parametrize("steps_of", ["feature", "token"])
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("coder", ["deflate", "contexts"])
def test_the_same_bits_twice_and_on_backend_native(dtype, steps_of, coder):
    x = tokens().to(dtype)
    x = torch.cat((x, x.flip(1)), 1)  # pairs of features that are equal: variances with ties
    options = {"steps_of": steps_of, "coder": coder}
    forms = [codec("feature-klt", backend=backend, **options).compress(x) for backend in ("torch", "torch", "native")]
    assert all(isinstance(form, KltForm) for form in forms)
    assert parts(forms[0]) == parts(forms[1]) == parts(forms[2])
    values = [form.decompress() for form in forms]
    assert same_bits(values[0], values[1])
    assert same_bits(values[0], values[2])


@pytest.mark.parametrize("scale", [2.0**-14, 1.0, 2.0**10])
def test_tokens_of_zeros_have_no_greater_errors_than_others(scale):
    """Errors are in units of a token's own deviation: zeros, which have none, take the least one."""
    x = tokens() * scale
    x[::2] = 0
    packed = codec("feature-klt", steps_of="token").compress(x)
    assert isinstance(packed, KltForm)
    errors = (packed.decompress() - x).square().mean(-1)
    assert errors[::2].max() <= errors[1::2].max()


@pytest.mark.parametrize("steps_of", ["feature", "token"])
def test_all_bytes_count_and_decode_to_the_same_bits(steps_of):
    x = tokens()
    packed = codec("feature-klt", steps_of=steps_of).compress(x)
    streams = parts(packed)
    assert packed.nbytes == 32 + 4 * 2 + sum(map(len, streams))
    assert packed.directions.dtype == torch.bfloat16
    assert len(packed.directions.view(torch.uint8).flatten()) == 2 * FEATURES * packed.directions.shape[1]

    def reread(part):
        if isinstance(part, torch.Tensor):
            raw = bytearray(part.contiguous().flatten().view(torch.uint8).numpy().tobytes())
            return (torch.frombuffer(raw, dtype=part.dtype) if raw else part).view(part.shape)
        return replace(part, codes=tuple(map(reread, part.codes)), planes=tuple(map(reread, part.planes)))

    scales = None if packed.scales is None else reread(packed.scales)
    tensors = {name: reread(getattr(packed, name)) for name in ("mean", "directions", "step", "coded")}
    assert same_bits(replace(packed, scales=scales, **tensors).decompress(), packed.decompress())
    with pytest.raises(UserError, match="bitstream"):
        packed.to_bytes()


def test_values_that_are_not_finite_are_refused():
    x = tokens()
    x[5, 5] = float("nan")
    with pytest.raises(NonFiniteError, match="1 of"):
        codec("feature-klt").compress(x)


def test_the_conformance_suite():
    assert check_codec(FeatureKltCodec) > 50
