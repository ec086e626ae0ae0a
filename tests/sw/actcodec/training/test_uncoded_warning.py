"""One warning names the share that is not compressed; tensors that the user asked to keep exactly do not count."""

import threading
import warnings

import actcodec
import pytest
import torch
from actcodec.policies.recommended import families, recommended
from actcodec.study.models import ResNet
from actcodec.training.activation_compression import UncodedWarning
from torch import nn
from torch.nn import functional as F


class Doubled(torch.autograd.Function):
    """A custom function that saves its input."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return 2 * x

    @staticmethod
    def backward(ctx, gradient):
        (x,) = ctx.saved_tensors
        return 2 * gradient + 0 * x


class Custom(nn.Module):
    def forward(self, x):
        return Doubled.apply(x.tanh())


def convolutions():
    return nn.Sequential(nn.Conv2d(3, 16, 3), nn.BatchNorm2d(16), nn.ReLU(), nn.Conv2d(16, 8, 3))


IMAGES, ROWS = (8, 3, 16, 16), (64, 128)
MUCH = {
    "TorchScript": (lambda: torch.jit.script(convolutions()), IMAGES, "what TorchScript, custom autograd functions and fused"),
    "custom function": (
        lambda: nn.Sequential(nn.Linear(128, 128), Custom()),
        ROWS,
        "what TorchScript, custom autograd functions",
    ),
    "float64": (lambda: convolutions().double(), IMAGES, "activations in float64 100%"),
    "LSTM": (lambda: nn.LSTM(128, 64), ROWS, "integers of recurrent"),
    "pole": (
        lambda: nn.Sequential(nn.Linear(128, 128), nn.Softplus(), Called(torch.sqrt), nn.Linear(128, 8)),
        ROWS,
        "what sqrt saves, whose gradient tolerates no error",
    ),
}


class Called(nn.Module):
    """A function as a module."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


def step(model, x):
    found = model(x)
    return (found[0] if isinstance(found, tuple) else found).square().mean()


@pytest.mark.parametrize("name", MUCH)
def test_what_is_not_compressed_is_warned_of_once(name):
    torch.manual_seed(0)
    make, shape, reason = MUCH[name]
    model = make()
    x = torch.randn(shape, dtype=next(model.parameters()).dtype)
    context = actcodec.compress_activations(model, "sfpr", compress_loss=True)
    with pytest.warns(UncodedWarning) as said, context as stats:
        step(model, x).backward()
    assert len(said) == 1
    sentence = str(said[0].message)
    assert sentence == stats.much_uncoded
    assert reason in sentence
    assert sentence.startswith(f"{stats.uncoded_share:.0%} of the bytes that autograd keeps are not compressed: ")
    assert sentence.endswith(f"the ratio of everything is {stats.ratio_of_everything:.2f}")
    assert sentence in str(stats)
    assert 0.1 < stats.uncoded_share <= 1
    with warnings.catch_warnings():
        warnings.simplefilter("error", UncodedWarning)
        with context:
            step(model, x).backward()


ASKED = {
    "policy none": ("none", {}),
    "a policy that keeps signs only": ("brc", {}),
    "modules": ("sfpr", {"exclude": "*"}),
    "bytes": ("sfpr", {"min_bytes": 1 << 30}),
}


@pytest.mark.parametrize("name", ASKED)
def test_what_was_asked_for_is_not_warned_of(name):
    policy, options = ASKED[name]
    model = convolutions()
    with warnings.catch_warnings():
        warnings.simplefilter("error", UncodedWarning)
        with actcodec.compress_activations(model, policy, **options) as stats:
            step(model, torch.randn(IMAGES)).backward()
    assert stats.bytes_of_everything[0] > 1 << 14


def test_errors_and_few_bytes_are_not_warned_of():
    model = torch.jit.script(nn.Sequential(nn.Linear(16, 16), nn.GELU()))
    with warnings.catch_warnings():
        warnings.simplefilter("error", UncodedWarning)
        with actcodec.compress_activations(model, "sfpr") as stats:
            step(model, torch.randn(8, 16))
        assert stats.uncoded
        model = torch.jit.script(convolutions())
        with pytest.raises(RuntimeError, match="scalar outputs"), actcodec.compress_activations(model, "sfpr"):
            model(torch.randn(IMAGES)).backward()


def classifier():
    model = ResNet(3, 10, width=16, depth=1)
    return model, lambda: F.cross_entropy(model(torch.randn(IMAGES)), torch.arange(8))


def encoder():
    model = nn.TransformerEncoder(nn.TransformerEncoderLayer(64, 4, 128, batch_first=True), 2)
    return model, lambda: model(torch.randn(4, 32, 64)).square().mean()


@pytest.mark.parametrize("make", [classifier, encoder])
@pytest.mark.parametrize("policy", sorted({recommended(family).text for family in families()} | {"sfpr", "jpeg-gmc"}))
def test_ordinary_networks_are_not_warned_of(make, policy):
    torch.manual_seed(0)
    name, *options = policy.split()
    model, loss_of = make()
    chosen = {key: int(value) for key, value in (option.split("=") for option in options)}
    with warnings.catch_warnings():
        warnings.simplefilter("error", UncodedWarning)
        with actcodec.compress_activations(model, name, **chosen):
            loss_of().backward()


def test_forward_on_another_thread_saves_nothing_here():
    model = convolutions()
    with actcodec.compress_activations(model, "sfpr") as stats:
        thread = threading.Thread(target=lambda: step(model, torch.randn(IMAGES)).backward())
        thread.start()
        thread.join()
    assert str(stats).splitlines()[0] == stats.headline
    assert stats.headline.startswith("nothing was saved for a backward pass while the context was open")
    assert stats.ratio_of_everything == 1
