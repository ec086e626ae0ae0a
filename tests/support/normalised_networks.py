"""Networks with batch normalisation in many places, and the gradients of their parameters."""

import torch
from actcodec.study.models import ResNet
from torch import nn
from torch.nn import functional as F
from torch.nn.grad import conv2d_input, conv2d_weight


class Chain(nn.Module):
    """Convolution, batch normalisation, ReLU in one of the ways to write it, convolution."""

    def __init__(self, relu="module", channels=8):
        super().__init__()
        self.conv1 = nn.Conv2d(3, channels, 3, padding=1, bias=False)
        self.bn = nn.BatchNorm2d(channels)
        self.conv2 = nn.Conv2d(channels, 5, 3, bias=False)
        self.act = {
            "module": nn.ReLU(),
            "in place": nn.ReLU(inplace=True),
            "functional": F.relu,
            "method": torch.Tensor.relu,
            "method in place": torch.Tensor.relu_,
        }[relu]

    def forward(self, x):
        return self.conv2(self.act(self.bn(self.conv1(x))))


def set_norm(norm, seed=0):
    """Gammas of both signs, betas within three of them."""
    random = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        sign = torch.where(torch.rand(norm.weight.shape, generator=random) < 0.3, -1.0, 1.0)
        norm.weight.copy_(sign * (0.5 + torch.rand(norm.weight.shape, generator=random)))
        norm.bias.copy_(torch.randn(norm.bias.shape, generator=random) * 0.7)


def images(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def gradients(model):
    return {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}


def relative(want, got):
    """Relative error of all gradients, as one vector."""
    assert want.keys() == got.keys() != set()
    flat = [torch.cat([grads[name].flatten() for name in want]) for grads in (want, got)]
    return float((flat[1] - flat[0]).norm() / flat[0].norm())


def substituted_gradients(model, x, weights, stored_of, copied):
    """Gradients of a Chain by torch's own backward functions, from copies in place of what they would read.

    ``stored_of(a, gamma, beta)`` is the copy of the result a of normalisation; ``copied`` that of x; ``weights`` the gradient
    at the network's result.
    """
    conv = F.conv2d(x, model.conv1.weight, padding=1)
    mean, variance = conv.mean((0, 2, 3)), conv.var((0, 2, 3), correction=0)
    if not model.training:
        mean, variance = model.bn.running_mean, model.bn.running_var
    sigma = (variance + model.bn.eps).sqrt()
    gamma, beta = model.bn.weight.detach(), model.bn.bias.detach()
    a = (conv - mean.view(1, -1, 1, 1)) / sigma.view(1, -1, 1, 1) * gamma.view(1, -1, 1, 1) + beta.view(1, -1, 1, 1)
    stored = stored_of(a.detach(), gamma, beta)
    per_channel = [t.double().view(1, -1, 1, 1) for t in (mean, beta, sigma, gamma)]
    normalised = (per_channel[0] + (stored - per_channel[1]) * per_channel[2] / per_channel[3]).float()
    wanted = {"conv2.weight": conv2d_weight(stored.relu().float(), model.conv2.weight.shape, weights)}
    at_relu = conv2d_input(stored.shape, model.conv2.weight, weights)
    at_norm = at_relu * (a > 0)
    at_conv, wanted["bn.weight"], wanted["bn.bias"] = torch.ops.aten.native_batch_norm_backward(
        *(at_norm.detach(), normalised.detach(), gamma, model.bn.running_mean, model.bn.running_var),
        *(mean.detach(), 1 / sigma.detach(), model.training, model.bn.eps, [True, True, True]),
    )
    wanted["conv1.weight"] = conv2d_weight(copied, model.conv1.weight.shape, at_conv, padding=1)
    return wanted


class PreActivation(nn.Module):
    """The paper's residual block: normalisation and ReLU before each convolution; the sum goes on as it is."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, padding=1)
        self.norms = nn.ModuleList([nn.BatchNorm2d(8) for _ in range(4)])
        self.convs = nn.ModuleList([nn.Conv2d(8, 8, 3, padding=1) for _ in range(4)])

    def forward(self, x):
        y = self.stem(x)
        for first in (0, 2):
            z = self.convs[first](F.relu(self.norms[first](y)))
            y = y + self.convs[first + 1](F.relu(self.norms[first + 1](z)))
        return y


class Branches(nn.Module):
    """A result that several layers read, before and after ReLU, and one normalisation that is used twice."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, padding=1)
        self.norm = nn.BatchNorm2d(8)
        self.convs = nn.ModuleList([nn.Conv2d(8, 8, 3, padding=1) for _ in range(4)])

    def forward(self, x):
        y = self.norm(self.stem(x))
        r = F.relu(y)
        z = self.convs[0](r) + self.convs[1](r) + self.convs[2](y) + r
        return self.convs[3](F.relu(self.norm(z)))


def features():
    """Linear layers: normalisation of (N, F)."""
    layers = [nn.Linear(20, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 16), nn.BatchNorm1d(16), nn.LeakyReLU(0.1)]
    return nn.Sequential(nn.Flatten(), nn.Linear(3 * 12 * 12, 20), *layers, nn.Linear(16, 4))


def images_network(*between):
    return nn.Sequential(nn.Conv2d(3, 8, 3), *between, nn.Conv2d(8, 4, 3))


#: By what is special about them.
NETWORKS = {
    "residual": lambda: ResNet(3, 10, 8, 2),
    "pre-activation": PreActivation,
    "branches": Branches,
    "features": features,
    "leaky": lambda: images_network(nn.BatchNorm2d(8), nn.LeakyReLU(0.1)),
    "leaky in place": lambda: images_network(nn.BatchNorm2d(8), nn.LeakyReLU(0.1, True)),
    "gelu": lambda: images_network(nn.BatchNorm2d(8), nn.GELU()),
    "silu": lambda: images_network(nn.BatchNorm2d(8), nn.SiLU()),
    "relu6": lambda: images_network(nn.BatchNorm2d(8), nn.ReLU6()),
    "no affine": lambda: images_network(nn.BatchNorm2d(8, affine=False), nn.ReLU()),
    "no statistics": lambda: images_network(nn.BatchNorm2d(8, track_running_stats=False), nn.ReLU()),
    "relu before": lambda: images_network(nn.ReLU(), nn.BatchNorm2d(8)),
    "pooled": lambda: images_network(nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2)),
    "instance": lambda: images_network(nn.InstanceNorm2d(8), nn.ReLU()),
    "group": lambda: images_network(nn.GroupNorm(2, 8), nn.ReLU()),
}
