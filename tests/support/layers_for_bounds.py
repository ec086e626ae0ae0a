"""Layers with their error bounds, and the gradient that a layer computes from a saved activation with an error."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from actcodec.policies.bounds import norm_bounds
from actcodec.policies.bounds import scalar_bounds as bounds
from torch import Tensor
from torch.autograd.graph import saved_tensors_hooks
from torch.nn import functional as F


def normal(*shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@dataclass
class Layer:
    """A layer that reads ``x`` and passes ``g`` back; ``of_weight`` selects the gradient that the bound is for."""

    run: Callable[[Tensor, Tensor], Tensor]
    x: Tensor
    weight: Tensor
    g: Tensor
    of_weight: bool
    demand_of: Callable[..., bounds.Demand]

    def gradient(self, error: Tensor | None = None) -> Tensor:
        """Return torch's gradient dW or dX from the saved x plus an error."""
        x, weight = self.x.clone().requires_grad_(), self.weight.clone().requires_grad_()
        found: list[Tensor] = []

        def pack(saved):
            if error is None or saved.data_ptr() != x.data_ptr():
                return saved
            found.append(saved)
            return saved + error.view(saved.shape)

        with saved_tensors_hooks(pack, lambda saved: saved):
            y = self.run(x, weight)
        assert error is None or len(found) == 1, "the layer saves x"
        return torch.autograd.grad(y, weight if self.of_weight else x, self.g)[0]

    def demand(self, **options) -> bounds.Demand:
        """Return the layer's bound."""
        return self.demand_of(self, self.gradient(), **options)

    def allowed(self, growth: float) -> float:
        """Return e**2 * V**2."""
        return growth * float(self.gradient().square().sum())

    def squared_error(self, error: Tensor) -> float:
        """Return the squared error of the gradient for one error of x."""
        return float((self.gradient(error) - self.gradient()).square().sum())


def product(run, x, weight, g, terms, reach=1.0) -> Layer:
    def demand(layer, gradient, independent=False, constant=0.5):
        return bounds.product_demand(layer.g, gradient, layer.x.numel(), reach, constant, terms if independent else 1)

    return Layer(run, x, weight, g, True, demand)


def convolution(run, x, weight, out, terms, stride=1, groups=1, coherent=0.0) -> Layer:
    kernel = weight.shape[2:]
    reach = bounds.convolution_reach(kernel, [stride] * len(kernel), groups)
    return product(run, x, weight, normal(*out, seed=2) + coherent, terms, reach)


def batch_norm(x, gamma, g) -> Layer:
    def demand(layer, gradient, independent=False):
        sigma = (layer.x.transpose(0, 1).flatten(1).var(1, correction=0) + 1e-5).sqrt()
        largest = layer.x.abs().transpose(0, 1).flatten(1).amax(1)
        return norm_bounds.batch_norm_demand(layer.g, gradient, sigma, layer.weight, largest, independent=independent)

    return Layer(lambda x, w: F.batch_norm(x, None, None, w, None, training=True), x, gamma, g, False, demand)


def layer_norm(x, gamma, g) -> Layer:
    def demand(layer, gradient, independent=False):
        sigma = (layer.x.reshape(-1, gamma.numel()).var(1, correction=0) + 1e-5).sqrt()
        return norm_bounds.layer_norm_demand(layer.g, gradient, sigma, layer.weight, independent=independent)

    return Layer(lambda x, w: F.layer_norm(x, gamma.shape, w), x, gamma, g, False, demand)


def layers() -> dict[str, Layer]:
    """Return one layer of every kind."""
    maps, square = normal(8, 4, 12, 12), normal(5, 4, 3, 3, seed=1)
    scales = torch.tensor([1.0, 5.0, 0.2, 2.0], dtype=torch.float64)[:, None, None]
    sparse = normal(8, 4, 12, 12, seed=2) * (normal(8, 4, 12, 12, seed=3) > 0)
    spread = 10.0 ** torch.linspace(-1, 1, 40, dtype=torch.float64).view(8, 5, 1)
    return {
        "linear": product(F.linear, normal(32, 24), normal(10, 24, seed=1), normal(32, 10, seed=2), 32),
        "linear, tokens": product(F.linear, normal(8, 5, 24), normal(10, 24, seed=1), normal(8, 5, 10, seed=2), 40),
        "linear, coherent": product(F.linear, normal(32, 24) + 1, normal(10, 24, seed=1), normal(32, 10, seed=2) + 1, 32),
        "conv 3x3": convolution(lambda x, w: F.conv2d(x, w, padding=1), maps, square, (8, 5, 12, 12), 8 * 144),
        "conv 3x3, coherent": convolution(
            lambda x, w: F.conv2d(x, w, padding=1), maps + 1, square, (8, 5, 12, 12), 8 * 144, coherent=1.0
        ),
        "conv 3x3, stride 2": convolution(
            lambda x, w: F.conv2d(x, w, padding=1, stride=2), maps, square, (8, 5, 6, 6), 8 * 36, stride=2
        ),
        "conv 1x1, stride 2": convolution(
            lambda x, w: F.conv2d(x, w, stride=2), maps, normal(5, 4, 1, 1, seed=1), (8, 5, 6, 6), 8 * 36, stride=2
        ),
        "conv, depthwise": convolution(
            lambda x, w: F.conv2d(x, w, padding=1, groups=4),
            maps,
            normal(4, 1, 3, 3, seed=1),
            (8, 4, 12, 12),
            8 * 144,
            groups=4,
        ),
        "conv1d": convolution(
            lambda x, w: F.conv1d(x, w, padding=2), normal(8, 4, 40), normal(5, 4, 5, seed=1), (8, 5, 40), 8 * 40
        ),
        "transposed, stride 2": convolution(
            lambda x, w: F.conv_transpose2d(x, w, stride=2), maps, normal(4, 5, 3, 3, seed=1), (8, 5, 25, 25), 8 * 144, stride=2
        ),
        "batch norm": batch_norm(maps * scales + scales, normal(4, seed=1), normal(8, 4, 12, 12, seed=2)),
        "batch norm into ReLU": batch_norm(maps * scales, normal(4, seed=1), sparse),
        "layer norm": layer_norm(normal(8, 5, 24), normal(24, seed=1), normal(8, 5, 24, seed=2)),
        "layer norm, unequal rows": layer_norm(normal(8, 5, 24) * spread, normal(24, seed=1), normal(8, 5, 24, seed=2)),
    }
