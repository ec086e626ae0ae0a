"""No codec and no policy makes nonsense of ordinary activations by default: zeros would be clearly worse."""

import actcodec
import pytest
import torch
from actcodec.codecs import CODEC_NAMES, codec, codec_options
from actcodec.study import experiment
from actcodec.study.data import load
from actcodec.study.recording import RecordingPolicy
from actcodec.training import POLICY_NAMES, policy
from torch.nn import functional

CODECS = [name for name in CODEC_NAMES if not codec(name).signs_only]
#: ||x - x'|| / ||x|| of zeros in place of the values. ActNN's two bits come near it where a group has maps of unequal size.
ZEROS = 1.0
#: Errors of division by bits: about two thirds of a step in 2**bits - 1 of a block's range, which is some 4.5 deviations.
MOST_OF_DIVISION = {2: 0.7, 4: 0.14, 8: 0.009}
STEPS = 40


@pytest.fixture(scope="module")
def images():
    return load("digits", None, 512)


@pytest.fixture(scope="module")
def trained(images):
    """A network after some steps of training."""
    recipe = experiment.Recipe(width=8, steps=STEPS, batch=32)
    model = experiment.initial_model(recipe, images, 0)
    experiment.train(recipe, images, "none", policy("none"), 0, model=model)
    return model


@pytest.fixture(scope="module")
def activations(images, trained):
    """Ordinary activations: those of the network, images, and distributions of each kind."""
    seen = {}
    recorder = RecordingPolicy((0,), lambda tensor, x: seen.setdefault(f"{len(seen)} {tensor.producer}", x.clone()))
    recorder.set_samples(None)
    with actcodec.compress_activations(trained, recorder):
        trained(images.train_inputs[:32])
    random = torch.Generator().manual_seed(0)
    normal = torch.randn(8, 16, 16, 16, generator=random)
    dense = torch.rand(8, 16, 16, 16, generator=random)
    return seen | {
        "photographs": load("photos", None, 8).train_inputs[:8].contiguous(),
        "normalised": normal,
        "relu": normal.relu(),
        "with a mean": normal + 1.5,
        "sparse": normal.relu() * (dense < 0.2),
        "uniform": dense,
    }


def relative_error(x, y):
    return float((y - x).double().norm() / x.double().norm())


@pytest.mark.parametrize("name", CODECS)
def test_defaults_keep_ordinary_activations(name, activations):
    assert len(activations) > 12
    for what, x in activations.items():
        one = codec(name)
        if one.fits(x.shape):
            assert relative_error(x, one.decompress(one.compress(x))) < ZEROS, what


@pytest.mark.parametrize("bits", MOST_OF_DIVISION)
def test_division_keeps_ordinary_activations_in_few_bits(bits, activations):
    for what, x in activations.items():
        if codec("division").fits(x.shape):
            for backend in ("torch", "native"):
                one = codec("division", bits=bits, backend=backend)
                assert relative_error(x, one.decompress(one.compress(x))) < MOST_OF_DIVISION[bits], what


def test_division_in_one_bit_has_the_error_of_any_unbiased_bit(activations):
    """A value v rounded to the ends a, b of its block without bias has the variance (b - v) (v - a), whoever rounds."""
    for what, x in activations.items():
        if not codec("division").fits(x.shape) or x.shape[-1] % 8 or x.shape[-2] % 8:
            continue
        n, c, h, w = x.shape
        blocks = x.double().view(n, c, h // 8, 8, w // 8, 8)
        least, greatest = blocks.amin((3, 5), keepdim=True), blocks.amax((3, 5), keepdim=True)
        unbiased = float(((greatest - blocks) * (blocks - least)).sum().sqrt() / x.double().norm())
        one = codec("division", bits=1)
        assert relative_error(x, one.decompress(one.compress(x))) == pytest.approx(unbiased, rel=0.1), what


def test_the_range_of_a_channel_is_worse_in_every_width(activations):
    """Why it is not the default (docs/methods/division.md)."""
    for bits in (1, 2, 4, 8):
        errors = {}
        for kind in ("block", "channel"):
            one = codec("division", bits=bits, range=kind)
            tensors = [x for x in activations.values() if one.fits(x.shape)]
            errors[kind] = sum(relative_error(x, one.decompress(one.compress(x))) for x in tensors) / len(tensors)
        assert errors["block"] < 0.75 * errors["channel"]


def test_the_default_of_division_is_the_range_of_a_block():
    assert codec_options("division")["range"] == "block"
    x = torch.randn(2, 3, 16, 16)
    assert codec("division").compress(x).to_bytes() == codec("division", range="block").compress(x).to_bytes()
    assert policy("division").rules[-2].codec.options.get("range", "block") == "block"
    assert policy("division-channel", bits=4).rules[-2].codec.options == {"bits": 4, "range": "channel"}


@pytest.mark.filterwarnings("ignore:vdnn:UserWarning", "ignore:actnn-L4:UserWarning")
@pytest.mark.parametrize("name", [name for name in POLICY_NAMES if name not in ("actnn-L5", "division-channel")])
def test_defaults_of_policies_keep_a_networks_activations(name, images, trained):
    x, labels = images.train_inputs[:32], images.train_targets[:32]
    with actcodec.compress_activations(trained, policy(name), measure_error=True) as stats:
        loss = functional.cross_entropy(trained(x), labels)
    loss.backward()
    trained.zero_grad(set_to_none=True)
    assert max(record.relative_error for record in stats.records) < ZEROS
