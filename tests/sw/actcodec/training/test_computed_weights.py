"""Weights that are computed in forward, from parameters and nothing else, are kept exactly and counted as weights."""

import actcodec
import pytest
import torch
from actcodec.saved.statistics import WEIGHTS
from torch import nn
from torch.nn import functional as F
from torch.nn.utils import parametrizations


class Merged(nn.Module):
    """A layer whose weight is merged with an adapter of low rank in each step, and scaled by magnitudes (LoRA, DoRA)."""

    def __init__(self, frozen):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(64, 64) / 8, requires_grad=not frozen)
        self.a, self.b = nn.Parameter(torch.randn(4, 64)), nn.Parameter(torch.randn(64, 4) / 8)
        self.magnitude = nn.Parameter(torch.ones(64, 1))
        self.register_buffer("scale", torch.tensor(0.5))

    def forward(self, x):
        weight = self.weight + self.scale * (self.b @ self.a)
        weight = self.magnitude * weight / torch.linalg.vector_norm(weight, dim=1, keepdim=True)
        return x @ weight.t()


class Standardised(nn.Conv2d):
    """A convolution whose filters are standardised in each step."""

    def forward(self, x):
        weight = self.weight - self.weight.mean((1, 2, 3), keepdim=True)
        weight = weight / (weight.std((1, 2, 3), keepdim=True) + 1e-5)
        return self._conv_forward(x, weight, self.bias)


class Gated(nn.Module):
    """A product of matrices whose weight goes through several functions."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Parameter(torch.randn(64, 32) / 8), nn.Parameter(torch.randn(64, 32) / 8)

    def forward(self, x):
        weight = torch.cat([torch.tanh(self.first), torch.exp(self.second)], 1).softmax(0)
        return torch.einsum("ni,io->no", x, weight)


ROWS, MAPS = (16, 64), (4, 8, 16, 16)
MODELS = {
    "merged": (lambda: Merged(False), ROWS),
    "merged with a frozen weight": (lambda: Merged(True), ROWS),
    "standardised": (lambda: Standardised(8, 32, 3), MAPS),
    "gated": (Gated, ROWS),
    "spectral norm": (lambda: parametrizations.spectral_norm(nn.Linear(64, 64)), ROWS),
    "weight norm": (lambda: parametrizations.weight_norm(nn.Linear(64, 64)), ROWS),
    "orthogonal": (lambda: parametrizations.orthogonal(nn.Linear(64, 64)), ROWS),
}


@pytest.mark.parametrize("name", MODELS)
def test_only_activations_are_compressed(name):
    torch.manual_seed(0)
    make, shape = MODELS[name]
    model, x = make().eval(), torch.randn(shape, requires_grad=True)  # spectral norm changes its vectors in training
    exact = torch.autograd.grad(model(x).sum(), x)  # reads the weight alone
    with actcodec.compress_activations(model, "sfpr", min_bytes=0) as stats:
        y = model(x)
    assert torch.equal(torch.autograd.grad(y.sum(), x)[0], exact[0])
    assert [torch.Size(record.shape).numel() for record in stats.records] == [x.numel()]
    assert {record.codec for record in stats.records} == {"sfpr"}
    assert stats.not_counted[WEIGHTS] > 0


def test_what_is_computed_of_a_trained_input_is_compressed():
    """An optimised image is a parameter, and so are learnt queries; results of layers from them are activations."""
    image = nn.Parameter(torch.rand(1, 3, 32, 32))
    model = nn.Sequential(nn.Conv2d(3, 16, 3), nn.GELU(), nn.Conv2d(16, 16, 3), nn.GELU(), nn.Flatten(), nn.Linear(16 * 784, 4))
    with actcodec.compress_activations(model, "sfpr") as stats:
        loss = model(image).square().sum()
    loss.backward()
    assert sum(record.codec == "sfpr" for record in stats.records) == 4
    queries = nn.Parameter(torch.randn(10, 64))
    layer = nn.Linear(64, 64)
    with actcodec.compress_activations(layer, "sfpr", compress_loss=True) as stats:
        F.gelu(layer(queries.repeat(4, 1) * 2)).sum()
    assert [record.codec for record in stats.records] == ["sfpr", "sfpr"]
