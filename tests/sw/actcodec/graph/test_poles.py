"""Compiled graphs keep signs, and values near poles and steep operations, exactly; they code values that smooth ones read."""

from __future__ import annotations

import actcodec
import pytest
import torch
from actcodec.graph import compiled
from torch import nn
from torch.nn import functional as F


def _pairs(x):
    return x.view(128, 128, 2)


#: Functions of two tensors (128, 256) with a gradient that errors of 1/254 would spoil.
STEEP = {
    "distances": lambda a, b: _pairs(a - b).norm(dim=-1).repeat(1, 2),
    "distances, written out": lambda a, b: (_pairs(a - b).square().sum(-1) + 1e-12).sqrt().repeat(1, 2),
    "directions": lambda a, b: F.normalize(_pairs(a), dim=-1).flatten(1) * b,
    "cosines": lambda a, b: F.cosine_similarity(_pairs(a), _pairs(b), dim=-1).repeat(1, 2),
    "logarithms of softplus": lambda a, b: (F.softplus(8 * a) + 1e-6).log() + b,
    "logarithms of squares": lambda a, b: (a * a + 1e-8).log() + b,
    "quotients": lambda a, b: a / (b.abs() + 1e-2),
    "reciprocals": lambda a, b: a / (b * b + 1e-4),
    "reciprocal roots": lambda a, b: a * (b * b + 1e-4).rsqrt(),
    "powers": lambda a, b: (a.abs() + 1e-3).pow(b),
    "angles": torch.atan2,
    "hypotenuses": torch.hypot,
    "products": lambda a, b: a.view(128, 64, 4).cumprod(-1).flatten(1) * b,
    "entropies": lambda a, b: torch.xlogy(F.relu(a) + 1e-5, F.relu(b) + 1e-5),
    "sines of many frequencies": lambda a, b: torch.sin(a * 3.14 * 2 ** (torch.arange(256) % 8)) * b,
    "remainders": lambda a, b: (10 * a).remainder(1.0) * b,
}
#: Functions whose gradient tolerates such errors.
SMOOTH = {
    "products": lambda a, b: a * b,
    "softplus": lambda a, b: F.softplus(a) * b,
    "mish": lambda a, b: F.mish(a) * b,
    "gelu": lambda a, b: F.gelu(a) * b,
    "softmax": lambda a, b: a.softmax(-1) * b,
    "root mean squares": lambda a, b: a * (a.square().mean(-1, keepdim=True) + 1e-6).rsqrt() * b,
    "layer norm": lambda a, b: F.layer_norm(a, (256,)) * b,
}


class Between(nn.Module):
    """A function of the results of two linear layers, which a third one reads."""

    def __init__(self, function):
        super().__init__()
        self.first, self.second, self.last, self.function = nn.Linear(64, 256), nn.Linear(64, 256), nn.Linear(256, 64), function

    def forward(self, x):
        return self.last(self.function(self.first(x), self.second(x)))


def gradients(model):
    """Return the gradients of a step, by parameter."""
    generator = torch.Generator().manual_seed(1)
    x, y = torch.randn(128, 64, generator=generator), torch.randn(128, 64, generator=generator)
    model.zero_grad()
    F.mse_loss(model(x), y).backward()
    return {name: parameter.grad.clone() for name, parameter in model.named_parameters()}


def cosines(function, parts):
    """Return the cosine of each parameter's gradient with the exact one."""
    torch.manual_seed(0)
    model = Between(function)
    exact = gradients(model)
    handle = actcodec.compiled(model, "int8", parts=parts)
    found = gradients(model)
    handle.close()
    return {name: float(F.cosine_similarity(found[name].flatten(), exact[name].flatten(), dim=0)) for name in exact}


@pytest.mark.parametrize("parts", [1, 4])
@pytest.mark.parametrize("name", STEEP)
def test_errors_are_not_multiplied(name, parts, graphs_as_they_are):
    """The steps of a function stay in one part, or the part with the pole would not know what the others code."""
    found = cosines(STEEP[name], parts)
    assert min(found.values()) > 0.99, found


def test_inductor_does_the_same():
    def all_of_them(a, b):
        return sum(
            STEEP[name](a, b) for name in ("distances", "logarithms of squares", "quotients", "sines of many frequencies")
        )

    for parts in (1, None):
        found = cosines(all_of_them, parts)
        assert min(found.values()) > 0.999, found


@pytest.mark.parametrize("name", SMOOTH)
def test_smooth_functions_are_coded(name, graphs_as_they_are, monkeypatch):
    """Both results of the first layers are: nothing of their size is kept in 32 bits."""
    kept = []
    partition = compiled.Partitioner.__call__

    def noting(self, joint, inputs, **options):
        forward, backward = partition(self, joint, inputs, **options)
        values = (node.meta["val"] for node in forward.graph.output_node().args[0][options["num_fwd_outputs"] :])
        kept.extend(one for one in values if isinstance(one, torch.Tensor))
        return forward, backward

    monkeypatch.setattr(compiled.Partitioner, "__call__", noting)
    assert min(cosines(SMOOTH[name], 1).values()) > 0.999
    assert {one.dtype for one in kept if one.numel() >= 128 * 256} == {torch.int8}
