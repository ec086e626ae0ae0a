"""Rows C12 and C13 of docs/user/plugin.md: every codec and every width in the plug-in."""

import copy

import actcodec
import pytest
import torch
from actcodec.policies.catalog import POLICY_NAMES
from actcodec.testing.pairwise import pairwise
from actcodec.training import Policy, Rule, policy
from catalog_facts import FLOATS, SUBJECTS, VARIANT_IDS, VARIANTS
from torch import nn

every_variant = pytest.mark.parametrize(("subject", "bits"), VARIANTS, ids=VARIANT_IDS)


def convnet(width, dtype=torch.float32):
    layers = [nn.Conv2d(3, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU(), nn.Conv2d(width, 4, 3)]
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(4 * 14 * 14, 5)).to(dtype)


def gradients(model):
    found = [p.grad for p in model.parameters()]
    model.zero_grad()
    return found


def assert_undisturbed(make_policy):
    """Two models, forward and backward passes interleaved: each as if it were alone."""
    models, inputs = [convnet(8), convnet(6)], [torch.randn(4, 3, 16, 16), torch.randn(2, 3, 16, 16)]
    alone = []
    for model, x in zip(copy.deepcopy(models), inputs, strict=True):
        with actcodec.compress_activations(model, make_policy()):
            loss = model(x).square().mean()
        loss.backward()
        alone.append(gradients(model))
    (a, b), (x, y) = models, inputs
    first, second = make_policy(), make_policy()
    with actcodec.compress_activations(a, first):
        hidden = a[:3](x)
        with actcodec.compress_activations(b, second):
            other = b(y).square().mean()
        loss = a[3:](hidden).square().mean()
    other.backward()
    loss.backward()
    for model, want in zip(models, alone, strict=True):
        assert all(torch.equal(got, wanted) for got, wanted in zip(gradients(model), want, strict=True))


@every_variant
def test_c12_two_models_with_one_codec_each(subject, bits):
    assert_undisturbed(lambda: policy(subject.make(bits)))


@pytest.mark.filterwarnings("ignore:actnn-L4 swaps")
@pytest.mark.parametrize("name", [name for name in POLICY_NAMES if name != "actnn-L5" or torch.cuda.is_available()])
def test_c12_two_models_with_one_policy_each(name):
    assert_undisturbed(lambda: policy(name))


#: Codec, width, format and backend of each gradient that C13 is about.
GRADIENTS = [(*variant, dtype, backend) for variant in VARIANTS for dtype in FLOATS for backend in variant[0].backends]


def factors(case):
    """Return a case with its width as the codec's option has it."""
    subject, bits, *others = case
    return (subject, subject.width(bits), *others)


@pytest.mark.parametrize(("subject", "bits", "dtype", "backend"), pairwise(GRADIENTS, factors), ids=str)
def test_c13_first_and_last_layers_get_their_gradient(subject, bits, dtype, backend):
    """The last layer's gradient multiplies the loss's gradient with a compressed activation, the first one's with the input."""
    model = convnet(8, dtype)
    x = torch.randn(4, 3, 16, 16).to(dtype)

    def step(which):
        with actcodec.compress_activations(model, which):
            loss = (model(x) * torch.arange(5)).sum()  # passes on a gradient that does not depend on the result
        loss.backward()
        return [model[0].weight.grad, model[-1].weight.grad, *gradients(model)][:2]

    # The signs of ReLU on their own: with one bit no value may be above zero.
    signs = Rule("brc", producer=("relu",), consumer=("relu",))
    wanted = step("none")
    for got, want in zip(step(Policy([signs], subject.make(bits, backend), keep_signs=True)), wanted, strict=True):
        assert got.isfinite().all()
        assert got.norm() > 0
        alike = torch.cosine_similarity(got.flatten().double(), want.flatten().double(), 0)
        # One bit tells nearly nothing of a value.
        assert bits == 1 or alike > (0.95 if bits is None or bits >= 4 else 0.4)


@pytest.mark.campaign
@pytest.mark.parametrize("subject", SUBJECTS.values(), ids=str)
def test_c13_in_every_width_format_and_backend(subject):
    for case in GRADIENTS:
        if case[0] is subject:
            torch.manual_seed(0)
            test_c13_first_and_last_layers_get_their_gradient(*case)
