"""Codecs acgc-jpeg and acgc-sfpr+zvc: the level of the relation, the required error, refusals."""

import json
import math
from importlib.resources import files

import actcodec
import numpy as np
import pytest
import torch
from actcodec.codecs import Compressed, JpegBaseCompressed, TorchBackend
from actcodec.codecs.acgc.cusz_form import CuszForm
from actcodec.codecs.acgc.level_map import load_level_map, roughness
from actcodec.golden.sfpr import NonFiniteError
from actcodec.study import experiment
from actcodec.study.data import load
from actcodec.study.recording import RecordingPolicy
from cdu_spec import UserError, dqt
from cdu_spec.jpeg import ZIGZAG
from cdu_spec.modes import Mode
from hypothesis import given, settings
from hypothesis import strategies as st

SHIPPED = json.loads(files("actcodec.codecs.acgc").joinpath("jpeg_levels.json").read_text())
MAPS = st.tuples(st.integers(1, 3), st.integers(1, 4), st.integers(8, 20), st.integers(8, 20))


def features(seed=0, shape=(8, 6, 24, 24), smoothing=3):
    """Return smoothed noise with channels of different ranges."""
    noise = torch.randn(shape, generator=torch.Generator().manual_seed(seed))
    x = torch.nn.functional.avg_pool2d(noise, smoothing, 1, smoothing // 2)[..., : shape[2], : shape[3]]
    return x * 4.0 ** torch.arange(shape[1])[:, None, None]


@pytest.fixture(scope="module")
def recorded():
    """Return tensors that a network on digits saves in its sixth step, unlike those behind the shipped relation."""
    seen = []
    recipe = experiment.Recipe(width=8, steps=6)
    policy = RecordingPolicy({5}, lambda tensor, x: seen.append(x.clone()))
    experiment.train(recipe, load("digits", limit=512), "none", policy, 3)
    return [x for x in seen if actcodec.codec("acgc-jpeg").fits(x.shape)]


def channel_rms(x, y):
    return (y.double() - x.double()).square().mean((0, 2, 3)).sqrt()


#: Quality of each table as a stream carries it; the least of equal tables.
BY_DIVISORS = {tuple(dqt.image_table(q)[i] for i in ZIGZAG): q for q in range(100, 0, -1)}
BY_SHIFTS = {tuple(dqt.shifts(f"image{q}")[8 * (i % 8) + i // 8] for i in range(64)): q for q in range(100, 0, -1)}


def quality_of(packed):
    """Return the quality in use, by the table that the stream carries."""
    return BY_DIVISORS[packed.header.divisors] if isinstance(packed, JpegBaseCompressed) else BY_SHIFTS[packed.shifts]


@pytest.mark.parametrize("coder", ["jpeg-base", "jpeg-act"])
@pytest.mark.parametrize("by_channel", [False, True])
def test_coarsest_level_by_the_relation(coder, by_channel):
    x = features()
    codec = actcodec.codec("acgc-jpeg", coder=coder, deviations=0.0)
    qualities = [level["quality"] for level in SHIPPED["coders"][coder]["levels"]]
    predicted = codec.predicted(x)
    assert predicted.shape == (len(qualities), 6)
    found = []
    for part in (0.02, 0.05, 0.1, 0.2, 0.4):
        error = part * x.std((0, 2, 3)) if by_channel else part * x.std().view(1)
        packed = codec.compress_within(x, error)
        used = quality_of(packed)
        place = next(i for i, quality in enumerate(qualities) if quality >= used)
        asked = predicted if by_channel else predicted.square().mean(1, keepdim=True).sqrt()
        kept = (asked <= error).all(1)
        if bool(kept.any()):
            assert bool(kept[place])
            assert not kept[:place].any()
        else:
            assert place == len(qualities) - 1
        found.append(qualities[place])
    assert found == sorted(found, reverse=True)
    assert found[0] > found[-1]


def test_relation_by_its_definition():
    x = features()
    codec = actcodec.codec("acgc-jpeg", deviations=2.0)
    steps = x.double().abs().amax((0, 2, 3)) / 127
    s = (x.double() / steps[:, None, None]).numpy()
    across, down = np.diff(s, axis=3), np.diff(s, axis=2)
    slope = np.sqrt(((across**2).mean((0, 2, 3)) + (down**2).mean((0, 2, 3))) / 4)
    corners = s[..., 1:, 1:] - s[..., 1:, :-1] - s[..., :-1, 1:] + s[..., :-1, :-1]
    twist = np.sqrt((corners**2).mean((0, 2, 3))) / 2
    for level, row in zip(SHIPPED["coders"]["jpeg-base"]["levels"], codec.predicted(x), strict=True):
        a, b, c = level["coefficients"]
        expected = np.exp(a + b * np.log(slope) + c * np.log(twist) + 2 * level["deviation"]) * steps.numpy()
        # SFPR's multiplier has 8 significand bits.
        assert np.allclose(row.numpy(), expected, rtol=0.01)


def test_roughness_of_noise_and_of_constants():
    noise = 3 * torch.randn(16, 2, 64, 64, generator=torch.Generator().manual_seed(0))
    assert torch.allclose(roughness(noise).exp(), torch.full((2, 2), 3.0), rtol=0.02)
    assert torch.equal(roughness(torch.ones(2, 3, 8, 8)), torch.full((2, 3), -math.inf))


@pytest.mark.parametrize("coder", ["jpeg-base", "jpeg-act"])
def test_predicted_against_measured_on_other_data(recorded, coder):
    codec = actcodec.codec("acgc-jpeg", coder=coder, deviations=0.0)
    ratios = []
    for x in recorded:
        predicted = codec.predicted(x)
        for place in range(0, len(predicted), 4):
            level = SHIPPED["coders"][coder]["levels"][place]["quality"]
            y = actcodec.codec(coder, dqt=f"image{level}", S=127 / 128).compress(x).decompress()
            ratios.append((channel_rms(x, y) / predicted[place]).log())
    ratios = torch.cat(ratios)
    ratios = ratios[ratios.isfinite()]
    assert len(ratios) > 100
    assert ratios.abs().median() < 0.1
    assert ratios.abs().quantile(0.95) < 0.4


def test_channels_of_zeros_ask_for_nothing():
    x = features()
    error = 0.2 * x.std((0, 2, 3))
    with_zeros = x.clone()
    with_zeros[:, 2] = 0
    tiny = error.clone()
    tiny[2] = 1e-30
    one, other = (actcodec.codec("acgc-jpeg").compress_within(*pair) for pair in ((x, error), (with_zeros, tiny)))
    assert quality_of(one) == quality_of(other) < 90


@settings(max_examples=40)
@given(MAPS, st.sampled_from([1, 3, 7]), st.floats(-9, 0), st.booleans(), st.booleans(), st.integers(0, 2**31))
def test_verified_errors_are_certain(shape, smoothing, exponent, by_channel, ragged, seed):
    x = features(seed, shape, smoothing)
    if ragged:
        x = torch.where(x > x.std(), x * 50, x)
    spread = x.square().mean((0, 2, 3)).sqrt() if by_channel else x.square().mean().sqrt().view(1)
    error = 2.0**exponent * spread
    packed = actcodec.codec("acgc-jpeg", verify=True, deviations=-3.0).compress_within(x, error)
    squares = (packed.decompress().double() - x.double()).square()
    rms = squares.mean((0, 2, 3)).sqrt() if by_channel else squares.mean().sqrt()
    assert (rms <= error).all()


def test_what_no_table_keeps_goes_to_cusz():
    x = features()
    error = x.abs().amax((0, 2, 3)) * 2.0**-12
    finest = actcodec.codec("acgc-jpeg").compress_within(x, error)
    assert quality_of(finest) == 100
    assert (channel_rms(x, finest.decompress()) > error).all()
    packed = actcodec.codec("acgc-jpeg", verify=True).compress_within(x, error)
    assert isinstance(packed, CuszForm)
    assert (channel_rms(x, packed.decompress()) <= error * (1 + 1e-6)).all()


@pytest.mark.parametrize("coder", ["jpeg-base", "jpeg-act"])
def test_streams_are_those_of_the_coder(coder):
    packed = actcodec.codec("acgc-jpeg", coder=coder).compress_within(features(), torch.tensor([0.5]))
    stream = packed.to_bytes()
    assert len(stream) == packed.nbytes
    again = actcodec.from_bytes(stream)
    assert again.codec == coder
    assert torch.equal(again.decompress(), packed.decompress())


def test_levels_of_a_file_of_ones_own(tmp_path):
    table = json.loads(json.dumps(SHIPPED))
    table["coders"]["jpeg-base"]["levels"] = [{"quality": 33, "coefficients": [0, 0, 0], "deviation": 0}]
    path = tmp_path / "levels.json"
    path.write_text(json.dumps(table))
    codec = actcodec.codec("acgc-jpeg", levels=str(path))
    assert quality_of(codec.compress_within(features(), torch.tensor([1e9]))) == 33
    # a = b = c = 0: every channel has an error of one step of its own.
    x = features()
    assert torch.allclose(codec.predicted(x)[0].float(), x.abs().amax((0, 2, 3)) / 127, rtol=0.01)


def test_the_shipped_relation():
    assert SHIPPED["command"].startswith("cdu fit-levels ")
    assert set(SHIPPED["coders"]) == {"jpeg-base", "jpeg-act"}
    for coder in SHIPPED["coders"]:
        levels = load_level_map(coder)
        assert levels.S == 127 / 128
        assert len(levels.qualities) == len(levels.coefficients) == len(levels.deviations) > 20


@settings(max_examples=150)
@given(
    st.one_of(MAPS, st.tuples(st.integers(1, 40)), st.tuples(st.integers(1, 5), st.integers(1, 9), st.integers(1, 3))),
    st.sampled_from(["normal", "relu", "two numbers"]),
    st.floats(-6, 3),
    st.booleans(),
    st.integers(0, 2**31),
)
def test_sparse_tensors_keep_the_error(shape, kind, exponent, by_channel, seed):
    x = torch.randn(shape, generator=torch.Generator().manual_seed(seed))
    x = {"normal": x, "relu": x.relu(), "two numbers": torch.where(x > 0, 0.7, 0.25)}[kind]
    count = shape[1] if by_channel and len(shape) > 1 else 1
    error = 2.0**exponent * torch.rand(count, generator=torch.Generator().manual_seed(seed)).add(0.5)
    y = actcodec.codec("acgc-sfpr+zvc").compress_within(x, error).decompress()
    assert not y[x == 0].any()
    axes = [axis for axis in range(x.ndim) if count == 1 or axis != 1]
    rms = (y.double() - x.double()).square().mean(axes).sqrt().view(-1)
    # Errors are as required, or those of steps of 1/127 of the greatest magnitude.
    finest = x.abs().amax().double() / 127 / 2
    assert (rms <= torch.maximum(error.double(), finest * (1 + 2.0**-16))).all()


def test_larger_errors_make_more_zeros_and_fewer_bytes():
    x = torch.randn(4, 8, 16, 16, generator=torch.Generator().manual_seed(0)).relu()
    packed = [actcodec.codec("acgc-sfpr+zvc").compress_within(x, torch.tensor([e])) for e in (0.001, 0.05, 0.2)]
    sizes = [one.nbytes for one in packed]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[-1] < 0.9 * sizes[0]
    assert all(isinstance(one, Compressed) and one.header.mode is Mode.SFPR_ZVC for one in packed)
    assert torch.equal(actcodec.from_bytes(packed[1].to_bytes()).decompress(), packed[1].decompress())


@pytest.mark.parametrize("name", ["acgc-jpeg", "acgc-sfpr+zvc"])
def test_another_backend_computes(name):
    class Counting(TorchBackend):
        calls = 0

        def compress_tensor(self, *arguments):
            self.calls += 1
            return super().compress_tensor(*arguments)

        def decompress_tensor(self, *arguments):
            self.calls += 1
            return super().decompress_tensor(*arguments)

    counting, x = Counting(), features()
    codec = actcodec.codec(name, backend=counting)
    y = codec.decompress(codec.compress(x))
    assert counting.calls == 2
    assert torch.equal(y, actcodec.codec(name).compress(x).decompress())


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"coder": "png"}, "use jpeg-base or jpeg-act"),
        ({"huffman": "best"}, "use standard or optimal"),
        ({"deviations": math.nan}, "use a number from -100 to 100"),
        ({"levels": "nowhere.json"}, "cannot read the levels in nowhere.json"),
    ],
)
def test_refused_options(options, words):
    with pytest.raises(UserError, match=words):
        actcodec.codec("acgc-jpeg", **options)


@pytest.mark.parametrize(
    "content",
    [
        "{}",
        "[]",
        "no JSON",
        '{"format": 2}',
        json.dumps(SHIPPED | {"coders": {}}),
        json.dumps(SHIPPED | {"coders": {"jpeg-base": 1}}),
    ]
    + [
        json.dumps(SHIPPED | {"coders": {"jpeg-base": {"least": [0, 0], "levels": levels}}})
        for levels in (
            [],
            [{"quality": 5, "coefficients": [0, 0], "deviation": 0}],
            [{"quality": 5, "coefficients": [0, 0, math.nan], "deviation": 0}],
            [{"quality": q, "coefficients": [0, 0, 0], "deviation": 0} for q in (9, 5)],
        )
    ],
)
def test_refused_files(tmp_path, content):
    path = tmp_path / "levels.json"
    path.write_text(content)
    with pytest.raises(UserError, match="cdu fit-levels"):
        actcodec.codec("acgc-jpeg", levels=str(path))


def test_refused_tensors():
    codec = actcodec.codec("acgc-jpeg")
    for shape in ((4, 4), (1, 1, 7, 8), (2, 8, 4, 8)):
        assert not codec.fits(shape)
        with pytest.raises(UserError, match="use sfpr"):
            codec.compress(torch.ones(shape))
    for name in ("acgc-jpeg", "acgc-sfpr+zvc"):
        x = torch.ones(1, 2, 8, 8)
        with pytest.raises(UserError, match="positive finite"):
            actcodec.codec(name).compress_within(x, torch.tensor([-1.0]))
        x[0, 1, 2, 3] = math.nan
        with pytest.raises(NonFiniteError):
            actcodec.codec(name).compress_within(x, torch.tensor([1.0]))
