"""Factors of tensors that a pole reads: exact where the pole multiplies their error, and compressed elsewhere."""

import gc
import weakref

import actcodec
import pytest
import torch
from losses_by_hand import LOSSES
from torch import nn
from torch.nn import functional as F


class Step(nn.Module):
    """A model that computes its loss in its own forward, where nothing tells it from other code."""

    def __init__(self, which):
        super().__init__()
        self.network, self._which = which.model(), which

    def forward(self):
        return self._which.loss(self._which.forward(self.network))


def gradient(which, **options):
    torch.manual_seed(0)
    model = Step(which)
    torch.manual_seed(1)
    with actcodec.compress_activations(model, min_bytes=0, **options):
        loss = model()
    loss.backward()
    return torch.cat([p.grad.flatten() for p in model.parameters()])


@pytest.mark.parametrize("policy", ["jpeg-gmc", "sfpr", "transformer", "blpa-coded"])
@pytest.mark.parametrize(
    "name",
    ["Charbonnier", "Jensen-Shannon", "total variation", "spectral", "focal of a sigmoid", "Gaussian likelihood", "edges"],
)
def test_a_loss_in_a_models_own_code(name, policy):
    """The bound leaves room for the policy's error in the network itself."""
    got, exact = gradient(LOSSES[name], codec=policy), gradient(LOSSES[name], codec="none")
    assert torch.cosine_similarity(got, exact, 0) > (0.9 if name == "spectral" else 0.99)


class Code(nn.Module):
    """A layer with a function behind it."""

    def __init__(self, function):
        super().__init__()
        self.layer, self.function = nn.Linear(16, 64), function

    def forward(self, x):
        return self.function(self.layer(x))


def rows(function, **options):
    """Codecs of the tensors that the operations have saved, by the names of the operations."""
    torch.manual_seed(0)
    model = Code(function)
    with actcodec.compress_activations(model, "sfpr", min_bytes=0, **options) as stats:
        loss = model(torch.randn(8, 16)).sum()
    loss.backward()
    return {operation: record.codec for record in stats.records for operation in record.saved_by}, stats


@pytest.mark.parametrize(
    ("function", "factor"),
    [
        (lambda y: (y * y + 1e-3).sqrt(), "mul"),
        (lambda y: (y**2 + 1e-3) ** 0.5, "pow"),
        (lambda y: y.square().add_(1e-3).rsqrt(), "square"),
        (lambda y: torch.log(y.exp() + 1e-3), "exp"),
        (lambda y: 1 / (y.exp() + 1), "exp"),
        (lambda y: 2.0 / (torch.sigmoid(y) + 1e-3), "sigmoid"),
        (lambda y: y / (y.abs() * y.abs() + 1), "mul"),
        (lambda y: (y**2).view(8, 8, 8).transpose(1, 2).sum(1).clamp(min=1e-3).sqrt(), "pow"),
        (lambda y: torch.stack([y**2, y], 0)[0].add(1).log(), "pow"),
        (lambda y: F.binary_cross_entropy(0.99 * torch.sigmoid(y), torch.ones(8, 64)), "sigmoid"),
    ],
)
def test_factors_before_a_pole_are_exact(function, factor):
    found, stats = rows(function, measure_error=True)
    assert found[factor] == "exact"
    record = next(record for record in stats.records if factor in record.saved_by)
    assert record.bytes_compressed == record.bytes_original
    assert record.relative_error == 0


@pytest.mark.parametrize(
    ("function", "factor"),
    [
        (lambda y: (y.pow(2).mean(1, keepdim=True) + 1e-3).rsqrt(), "pow"),  # the mean square of a normalisation
        (lambda y: y.exp() / y.exp().sum(1, keepdim=True), "exp"),  # a softmax
        (lambda y: (y**2).sum(), "pow"),
        (lambda y: y.sigmoid() * y.sqrt().nan_to_num(), "sigmoid"),  # the pole has another argument
        (lambda y: (y**2 + 1) ** 2, "pow"),
        (lambda y: F.linear(y**2, torch.ones(4, 64, requires_grad=True)).add(1).log(), "linear"),
        (lambda y: y.exp() / 3, "exp"),
    ],
)
def test_elsewhere_they_are_compressed(function, factor):
    assert rows(function)[0][factor] == "sfpr"


def test_a_factor_that_was_changed_in_place_stays_as_its_codec_kept_it():
    def function(y):
        squared = y * y
        y.mul_(2)
        return (squared + 1).sqrt()

    assert rows(function)[0]["mul"] == "sfpr"


def test_a_view_of_what_is_kept_already():
    """The whole is compressed for a layer; the part before a pole is kept beside it."""

    def function(y):
        layer = F.linear(y, torch.ones(4, 64, requires_grad=True))
        part = y.view(64, 8)
        return layer.sum() + (part * part + 1e-3).sqrt().sum()

    _, stats = rows(function)
    record = next(record for record in stats.records if "linear" in record.saved_by and record.shape == (8, 64))
    assert record.codec == "sfpr"
    assert record.bytes_compressed > record.bytes_original


def test_factors_are_forgotten_with_the_result_and_by_the_layer_behind_it():
    alive = []

    def function(y):
        gate = torch.sigmoid(y) + 0
        result = gate * y
        alive.append(weakref.ref(gate.untyped_storage()))
        del gate, y
        gc.collect()
        assert alive[0]() is not None
        result = F.linear(result, torch.ones(64, 64, requires_grad=True))
        assert alive[0]() is None
        return result

    rows(function)
    assert alive


def test_nothing_outlives_the_context():
    """Factors of results that are alive are freed by counting references, as the graph is."""
    model = nn.Linear(16, 64)
    gc.disable()
    try:
        with actcodec.compress_activations(model, "sfpr", min_bytes=0, compress_loss=True):
            y = model(torch.randn(8, 16))
            result = y * y
            factor = weakref.ref(y.untyped_storage())
            del y
            assert factor() is not None
        assert factor() is None
        result.sum().backward()
    finally:
        gc.enable()
