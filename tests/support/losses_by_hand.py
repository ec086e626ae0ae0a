"""Losses as people write them by hand, for the plug-in's tests; each is a step in two parts: networks, and what follows."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F


def maps(channels: int, last: nn.Module | None = None) -> nn.Sequential:
    """A network from images (N, 2, H, W) to maps."""
    layers = [nn.Conv2d(2, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 8, 3, padding=1), nn.SiLU(), nn.Conv2d(8, channels, 1)]
    return nn.Sequential(*layers, *([] if last is None else [last]))


def vectors(width: int, out: int) -> nn.Sequential:
    """A network from vectors (N, width) to vectors."""
    return nn.Sequential(nn.Linear(width, 64), nn.ReLU(), nn.Linear(64, 64), nn.GELU(), nn.Linear(64, out))


@dataclass(frozen=True)
class LossByHand:
    """A step: ``loss(forward(model))``."""

    model: Callable[[], nn.Module]
    forward: Callable[[nn.Module], Any]
    loss: Callable[[Any], Tensor]


def _images(*shape: int) -> Tensor:
    """Smooth images, the same each time."""
    generator = torch.Generator().manual_seed(math.prod(shape))
    coarse = torch.rand(shape[0], shape[1], shape[2] // 4, shape[3] // 4, generator=generator)
    return F.interpolate(coarse, scale_factor=4, mode="bilinear")


def _numbers(*shape: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(math.prod(shape)))


def _classes(count: int, *shape: int) -> Tensor:
    return torch.randint(0, count, shape, generator=torch.Generator().manual_seed(count))


def _restored(model: nn.Module) -> Tensor:
    """An image with a small correction, as networks for restoration start."""
    image = _images(2, 2, 16, 16)
    return image + 0.01 * model(image + 0.1 * _numbers(2, 2, 16, 16))


def _of_images(model: nn.Module) -> Tensor:
    return model(_images(2, 2, 16, 16))


def charbonnier(y: Tensor) -> Tensor:
    difference = y - _images(2, 2, 16, 16) - 0.02 * _numbers(2, 2, 16, 16)
    return (difference * difference + 1e-6).sqrt().mean()


def charbonnier_of_a_square(y: Tensor) -> Tensor:
    return torch.sqrt((y - _images(2, 2, 16, 16)) ** 2 + 1e-6).mean()


def ssim(y: Tensor) -> Tensor:
    x = _images(2, 2, 16, 16)
    window = torch.full((2, 1, 7, 7), 1 / 49)

    def mean(z: Tensor) -> Tensor:
        return F.conv2d(z, window, groups=2)

    mx, my = mean(x), mean(y)
    vx, vy, both = mean(x * x) - mx**2, mean(y * y) - my**2, mean(x * y) - mx * my
    c1, c2 = 0.01**2, 0.03**2
    return 1 - ((2 * mx * my + c1) * (2 * both + c2) / ((mx**2 + my**2 + c1) * (vx + vy + c2))).mean()


def dice(logits: Tensor) -> Tensor:
    p = torch.sigmoid(logits)
    wanted = (_images(2, 1, 16, 16) > 0.7).float()
    inside = (p * wanted).sum((2, 3))
    return (1 - (2 * inside + 1e-6) / (p.pow(2).sum((2, 3)) + wanted.sum((2, 3)) + 1e-6)).mean()


def focal(logits: Tensor) -> Tensor:
    p = torch.softmax(logits, 1).gather(1, _classes(4, 2, 1, 16, 16))
    return (-((1 - p) ** 2) * torch.log(p + 1e-8)).mean()


def focal_of_sigmoid(logits: Tensor) -> Tensor:
    p, wanted = torch.sigmoid(4 * logits), (_images(2, 1, 16, 16) > 0.7).float()
    hit = p * wanted + (1 - p) * (1 - wanted)
    return (-0.25 * (1 - hit).pow(2) * hit.clamp(1e-6, 1).log()).mean()


def kullback_leibler(logits: Tensor) -> Tensor:
    p, q = torch.softmax(4 * logits, 1), torch.softmax(_numbers(32, 10), 1)
    return (q * (torch.log(q) - torch.log(p + 1e-10))).sum(1).mean()


def jensen_shannon(logits: Tensor) -> Tensor:
    p, q = torch.softmax(4 * logits, 1), torch.softmax(2 * _numbers(32, 10), 1)
    middle = (p + q) / 2
    return ((p * (p / middle).log()).sum(1) + (q * (q / middle).log()).sum(1)).mean() / 2


def info_nce(embedded: tuple[Tensor, Tensor]) -> Tensor:
    first, second = (z / z.pow(2).sum(1, keepdim=True).sqrt() for z in embedded)
    likeness = torch.exp(first @ second.T / 0.1)
    return -torch.log(likeness.diagonal() / likeness.sum(1)).mean()


def triplet(embedded: tuple[Tensor, Tensor, Tensor]) -> Tensor:
    anchor, positive, negative = embedded
    near = ((anchor - positive) ** 2).sum(1).sqrt()
    far = ((anchor - negative) ** 2).sum(1).sqrt()
    return F.relu(near - far + 0.5).mean()


def total_variation(y: Tensor) -> Tensor:
    across, down = y[..., :-1, 1:] - y[..., :-1, :-1], y[..., 1:, :-1] - y[..., :-1, :-1]
    return ((y - _images(2, 2, 16, 16)) ** 2).mean() + 0.1 * (across**2 + down**2 + 1e-8).sqrt().mean()


def spectral(y: Tensor) -> Tensor:
    ours, theirs = torch.fft.rfft2(y, norm="ortho"), torch.fft.rfft2(_images(2, 2, 16, 16), norm="ortho")
    size = (ours.real**2 + ours.imag**2 + 1e-8).sqrt()
    return (torch.log(size) - torch.log(theirs.abs() + 1e-4)).abs().mean() + (ours - theirs).abs().mean()


def gaussian_likelihood(y: Tensor) -> Tensor:
    mean, logarithm = y.chunk(2, 1)
    variance = torch.exp(3 * logarithm) + 1e-4
    return (0.5 * torch.log(variance) + (mean - _images(2, 2, 16, 16)) ** 2 / (2 * variance)).mean()


def huber(y: Tensor) -> Tensor:
    difference = y - _images(2, 2, 16, 16)
    return torch.where(difference.abs() < 0.1, 0.5 * difference**2 / 0.1, difference.abs() - 0.05).mean()


def ctc(logits: Tensor) -> Tensor:
    logarithms = torch.log(torch.softmax(logits.view(12, 8, 6), 2))
    lengths = torch.full((8,), 12), torch.full((8,), 3)
    return F.ctc_loss(logarithms, 1 + _classes(5, 8, 3), *lengths)


def quantile(y: Tensor) -> Tensor:
    rest = _numbers(64, 1) - y
    levels = torch.tensor([0.1, 0.5, 0.9])
    return torch.maximum(levels * rest, (levels - 1) * rest).mean()


def sinkhorn(embedded: tuple[Tensor, Tensor]) -> Tensor:
    x, y = embedded
    cost = (x[:, None] - y[None]).pow(2).sum(2)
    kernel = torch.exp(-cost / cost.detach().mean() / 0.2)
    u = torch.ones(len(x)) / len(x)
    for _ in range(5):
        v = 1 / (len(y) * (kernel.T @ u))
        u = 1 / (len(x) * (kernel @ v))
    return (u[:, None] * kernel * v[None] * cost).sum()


def cosine_distance(embedded: tuple[Tensor, Tensor]) -> Tensor:
    x, y = embedded
    lengths = (x * x).sum(1).sqrt() * (y * y).sum(1).sqrt()
    return (1 - (x * y).sum(1) / (lengths + 1e-8)).mean()


def evidence(y: tuple[Tensor, Tensor, Tensor]) -> Tensor:
    """The lower bound of a variational autoencoder."""
    image, mean, logarithm = y
    apart = -0.5 * (1 + logarithm - mean.pow(2) - logarithm.exp()).mean()
    p = torch.sigmoid(image)
    wanted = _images(2, 2, 16, 16)
    return apart - (wanted * (p + 1e-7).log() + (1 - wanted) * (1 - p + 1e-7).log()).mean()


class Autoencoder(nn.Module):
    """An encoder and a decoder that are called apart from each other."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder, self.decoder = maps(8), nn.Sequential(nn.Conv2d(4, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 2, 1))


def _autoencoded(model: nn.Module) -> tuple[Tensor, Tensor, Tensor]:
    mean, logarithm = model.encoder(_images(2, 2, 16, 16)).chunk(2, 1)
    drawn = mean + _numbers(2, 4, 16, 16) * torch.exp(0.5 * logarithm)
    return model.decoder(drawn), mean, logarithm


def wasserstein_with_penalty(y: tuple[Tensor, Tensor, Tensor, Tensor]) -> Tensor:
    real, fake, between, at = y
    (slope,) = torch.autograd.grad(between.sum(), at, create_graph=True)
    length = (slope.flatten(1).pow(2).sum(1) + 1e-12).sqrt()
    return fake.mean() - real.mean() + 10 * ((length - 1) ** 2).mean()


def _criticised(critic: nn.Module) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    real, fake = _images(4, 2, 16, 16), _numbers(4, 2, 16, 16)
    at = (real + fake).div(2).requires_grad_()
    return critic(real), critic(fake), critic(at), at


def _critic() -> nn.Module:
    layers = [nn.Conv2d(2, 8, 3, 2), nn.LeakyReLU(0.2), nn.Conv2d(8, 8, 3, 2), nn.LeakyReLU(0.2), nn.Flatten()]
    return nn.Sequential(*layers, nn.Linear(72, 1))


class PerceptualLoss(nn.Module):
    """Features of a network that is not trained."""

    def __init__(self) -> None:
        super().__init__()
        self.features = maps(8)
        self.requires_grad_(False)

    def forward(self, y: Tensor) -> Tensor:
        ours, theirs = self.features(y), self.features(_images(2, 2, 16, 16))
        return ((ours - theirs).pow(2) + 1e-6).sqrt().mean()


PERCEPTUAL, TEACHER = PerceptualLoss(), vectors(32, 10).requires_grad_(False)


def perceptual(y: Tensor) -> Tensor:
    return PERCEPTUAL(y) + 0.1 * (y - _images(2, 2, 16, 16)).abs().mean()


def distillation(logits: Tensor) -> Tensor:
    wanted = torch.softmax(TEACHER(_numbers(32, 32)) / 2, 1)
    return -(wanted * torch.log(torch.softmax(logits / 2, 1) + 1e-9)).sum(1).mean()


class Edges(nn.Module):
    """A module without parameters, with a buffer."""

    def __init__(self) -> None:
        super().__init__()
        edge = torch.tensor([[-1.0, 0, 1], [-2, 0, 2], [-1, 0, 1]]) / 8
        self.register_buffer("kernel", torch.stack([edge, edge.T]).unsqueeze(1).repeat(2, 1, 1, 1))

    def forward(self, y: Tensor) -> Tensor:
        edges = F.conv2d(y, self.kernel, groups=2)
        return (edges.unflatten(1, (2, 2)).pow(2).sum(2) + 1e-8).sqrt().mean()


def _pairs(model: nn.Module) -> tuple[Tensor, Tensor]:
    x = _numbers(32, 32)
    return model(x), model(x + 0.3 * _numbers(32, 1))


def _triples(model: nn.Module) -> tuple[Tensor, Tensor, Tensor]:
    x = _numbers(32, 32)
    return model(x), model(x + 0.1 * _numbers(32, 1)), model(_numbers(32, 33)[:, :32])


LOSSES = {
    "Charbonnier": LossByHand(lambda: maps(2), _restored, charbonnier),
    "Charbonnier of a square": LossByHand(lambda: maps(2), _restored, charbonnier_of_a_square),
    "SSIM": LossByHand(lambda: maps(2, nn.Sigmoid()), _of_images, ssim),
    "Dice": LossByHand(lambda: maps(1), _of_images, dice),
    "focal": LossByHand(lambda: maps(4), _of_images, focal),
    "focal of a sigmoid": LossByHand(lambda: maps(1), _of_images, focal_of_sigmoid),
    "Kullback-Leibler": LossByHand(lambda: vectors(32, 10), lambda m: m(_numbers(32, 32)), kullback_leibler),
    "Jensen-Shannon": LossByHand(lambda: vectors(32, 10), lambda m: m(_numbers(32, 32)), jensen_shannon),
    "InfoNCE": LossByHand(lambda: vectors(32, 16), _pairs, info_nce),
    "triplet": LossByHand(lambda: vectors(32, 16), _triples, triplet),
    "total variation": LossByHand(lambda: maps(2), _restored, total_variation),
    "spectral": LossByHand(lambda: maps(2), _of_images, spectral),
    "Gaussian likelihood": LossByHand(lambda: maps(4), _of_images, gaussian_likelihood),
    "Wasserstein with penalty": LossByHand(_critic, _criticised, wasserstein_with_penalty),
    "Huber": LossByHand(lambda: maps(2), _of_images, huber),
    "CTC": LossByHand(lambda: vectors(32, 6), lambda m: m(_numbers(96, 32)), ctc),
    "quantile": LossByHand(lambda: vectors(32, 3), lambda m: m(_numbers(64, 32)), quantile),
    "Sinkhorn": LossByHand(lambda: vectors(32, 4), _pairs, sinkhorn),
    "cosine": LossByHand(lambda: vectors(32, 16), _pairs, cosine_distance),
    "evidence": LossByHand(Autoencoder, _autoencoded, evidence),
    "perceptual": LossByHand(lambda: maps(2), _of_images, perceptual),
    "distillation": LossByHand(lambda: vectors(32, 10), lambda m: m(_numbers(32, 32)), distillation),
    "edges": LossByHand(lambda: maps(2), _of_images, Edges()),
}
