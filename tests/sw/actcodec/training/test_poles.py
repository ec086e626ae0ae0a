"""Networks written by hand from operations whose backward compares its saved tensors, or divides by them."""

import actcodec
import pytest
import torch
from actcodec.training import Policy, Rule
from torch import nn
from torch.nn import functional as F
from training_step import assert_trains, codecs_of, compressed_step, eight_bits, gradient_error, plain_step


class ChannelAttention(nn.Module):
    """CBAM's attention: a gate from the means and the largest values of the maps, then one from those of the channels."""

    def __init__(self, channels):
        super().__init__()
        self.shared = nn.Sequential(nn.Conv2d(channels, channels // 2, 1), nn.ReLU(), nn.Conv2d(channels // 2, channels, 1))
        self.spatial = nn.Conv2d(2, 1, 3, padding=1)

    def forward(self, x):
        gate = self.shared(x.mean((2, 3), keepdim=True)) + self.shared(x.amax((2, 3), keepdim=True))
        x = x * torch.sigmoid(gate)
        maps = torch.cat([x.mean(1, keepdim=True), x.amax(1, keepdim=True)], 1)
        return x * torch.sigmoid(self.spatial(maps))


class AverageAndMaximum(nn.Module):
    def forward(self, x):
        return 0.5 * (x.mean((2, 3)) + x.amax((2, 3)))


class GraphLayer(nn.Module):
    """The largest message of all neighbours, feature by feature."""

    def __init__(self, width, how):
        super().__init__()
        self.message, self.update, self.how = nn.Linear(2 * width, width), nn.Linear(2 * width, width), how

    def forward(self, x, edges):
        source, target = edges
        messages = F.silu(self.message(torch.cat([x[source], x[target]], 1)))
        empty = torch.zeros_like(x)
        if self.how == "scatter_reduce":
            best = empty.scatter_reduce(0, target[:, None].expand_as(messages), messages, "amax", include_self=False)
        else:
            best = empty.index_reduce(0, target, messages, "amax", include_self=False)
        return self.update(torch.cat([x, best], 1))


class GraphNetwork(nn.Module):
    def __init__(self, how):
        super().__init__()
        self.layers = nn.ModuleList([GraphLayer(16, how) for _ in range(2)])

    def forward(self, x, edges):
        for layer in self.layers:
            x = layer(x, edges)
        return x


class RootMeanSquare(nn.Module):
    """RMSNorm by hand."""

    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * self.weight


class Standardised(nn.Module):
    """LayerNorm by hand, as many networks have it."""

    def forward(self, x):
        centred = x - x.mean(-1, keepdim=True)
        return centred / (centred.pow(2).mean(-1, keepdim=True) + 1e-6).sqrt()


def log_sum_exp(x):
    largest = x.amax(-1, keepdim=True)
    return (x - largest).exp().sum(-1).log() + largest.squeeze(-1)


def images(*layers, head=None):
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), *layers, nn.Conv2d(8, 8, 3), head or nn.Flatten()
    )


def graph_loss(model):
    random = torch.Generator().manual_seed(3)
    edges = torch.randint(0, 40, (2, 160), generator=random)
    return model(torch.randn(40, 16), edges).square().mean()


def picture_loss(model):
    return model(torch.randn(4, 3, 12, 12)).square().mean()


def classes_by_hand(model):
    logits = model(torch.randn(6, 10, 16))
    return (log_sum_exp(logits) - logits[..., 3]).mean()


def embeddings(loss):
    def loss_of(model):
        random = torch.Generator().manual_seed(3)
        x = torch.randn(12, 16, generator=random)
        return loss(model(x), model(x + 0.3 * torch.randn(12, 16, generator=random)))

    return loss_of


def contrast(a, b):
    return F.cross_entropy(F.normalize(a, dim=1) @ F.normalize(b, dim=1).t() / 0.2, torch.arange(len(a)))


def tokens(*layers):
    return nn.Sequential(nn.Linear(16, 32), *layers, nn.GELU(), nn.Linear(32, 16))


NETWORKS = {
    "cbam": (lambda: images(ChannelAttention(8)), picture_loss),
    "average and maximum": (lambda: images(head=AverageAndMaximum()), picture_loss),
    "generalised mean": (
        lambda: images(head=nn.Sequential(nn.Softplus(), nn.LPPool2d(3, 10), nn.Flatten())), picture_loss
    ),
    "graph by scatter_reduce": (lambda: GraphNetwork("scatter_reduce"), graph_loss),
    "graph by index_reduce": (lambda: GraphNetwork("index_reduce"), graph_loss),
    "logsumexp": (lambda: tokens(), classes_by_hand),
    "rms norm": (lambda: tokens(RootMeanSquare(32)), classes_by_hand),
    "layer norm": (lambda: tokens(Standardised()), classes_by_hand),
    "cosine loss": (tokens, embeddings(lambda a, b: 1 - F.cosine_similarity(a, b).mean())),
    "contrast of directions": (tokens, embeddings(contrast)),
    "distances": (tokens, embeddings(lambda a, b: torch.cdist(a, b).mean())),
    "largest of all": (tokens, embeddings(lambda a, b: (a * b).max() + (a * b).median() + (a - b).abs().max())),
    "largest norm": (tokens, embeddings(lambda a, b: torch.linalg.vector_norm(a - b, torch.inf, dim=1).mean())),
    "products": (tokens, embeddings(lambda a, b: (torch.sigmoid(a * b).prod(1) + torch.tanh(a).cumprod(1).sum(1)).mean())),
    "entropy": (tokens, embeddings(lambda a, b: -((4 * a).softmax(1) * ((4 * b).softmax(1) + 1e-9).log()).sum(1).mean())),
    "deviations": (tokens, embeddings(lambda a, b: (a.std(1) / (b.std(1) + 0.1)).mean())),
    "roots": (tokens, embeddings(lambda a, b: ((a - b).square() + 1e-6).sqrt().mean() + (a.abs() + 1e-3).pow(0.3).mean())),
    "angles": (tokens, embeddings(lambda a, b: torch.atan2(a, b).square().mean() + (0.999 * torch.tanh(a)).acos().mean())),
}  # fmt: skip


@eight_bits
@pytest.mark.parametrize("name", NETWORKS)
def test_gradients_are_those_without_compression(name, which, options, bound):
    make, loss_of = NETWORKS[name]
    torch.manual_seed(0)
    model = make()
    assert_trains(model, loss_of, which, options | {"compress_loss": True}, bound, least_ratio=1)


@pytest.mark.parametrize("policy", ["sfpr", "actnn", "division", "blpa", "autoquant", "gist"])
def test_no_gradient_is_lost_by_few_bits(policy):
    for name, (make, loss_of) in NETWORKS.items():
        torch.manual_seed(0)
        model = make()
        reference, step = plain_step(model, loss_of), compressed_step(model, loss_of, policy, compress_loss=True)  # finite
        for parameter, gradient in reference.gradients.items():
            if gradient.abs().max() > 1e-6:
                assert step.gradients[parameter].any(), (name, parameter)


def test_what_an_extreme_compares_takes_a_bit_beside_the_values_that_others_read():
    step = compressed_step(images(ChannelAttention(8)), picture_loss, "sfpr", keep_signs=False)
    shared = [record for record in step.stats.records if "amax" in record.saved_by and record.shape[1:] == (8, 12, 12)]
    assert [(record.codec, record.saved_by) for record in shared] == [
        ("sfpr", ("relu", "amax", "mul")),
        ("sfpr", ("amax", "mul")),
    ]
    (values,) = {record.bytes_compressed for record in step.stats.records if record.saved_by == ("norm",)}  # one shape
    for record, size in zip(shared, (144, 8), strict=True):  # number of values per extreme
        count = record.bytes_original // 4
        assert record.bytes_compressed == values + count // 8 + 4 * count // size


def test_a_denominator_is_exact_and_its_numerator_compressed():
    model = nn.ModuleList([nn.Linear(8, 8), nn.Linear(8, 8)])

    def loss_of(m, divide=torch.div):
        x = torch.randn(6, 8)
        return divide(m[0](x), m[1](x) + 0.01).mean()

    for divide in (torch.div, torch.true_divide, torch.Tensor.__truediv__, torch.Tensor.div_, lambda a, b: 1 / b * a):
        step = compressed_step(model, lambda m, d=divide: loss_of(m, d), "sfpr", S=1.0, compress_loss=True)
        assert gradient_error(step, plain_step(model, lambda m, d=divide: loss_of(m, d))) < 0.02
    stats = compressed_step(model, loss_of, "sfpr", compress_loss=True).stats
    assert codecs_of(stats, op="linear") == {"sfpr"}
    assert codecs_of(stats, op="sum") == {"exact"}


class Root(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.sqrt()

    @staticmethod
    def backward(ctx, gradient):
        (x,) = ctx.saved_tensors
        return gradient / (2 * x.sqrt())


def test_s27_custom_functions_are_exact_unless_a_rule_names_them():
    """The backward of these functions is not known."""
    x = torch.rand(6, 8) ** 4

    def gradient(policy):
        leaf = x.clone().requires_grad_()
        with actcodec.compress_activations(nn.Module(), policy, min_bytes=0) as stats:
            y = Root.apply(leaf * 1)
        y.sum().backward()
        return leaf.grad, [record.codec for record in stats.records]

    want = 1 / (2 * x.sqrt())
    for policy in ("sfpr", "actnn", actcodec.codec("sfpr"), Policy((Rule("sfpr", producer=("mul",)),))):
        got, codecs = gradient(policy)
        torch.testing.assert_close(got, want)
        assert codecs == ["exact"]
    got, codecs = gradient(Policy((Rule("sfpr", consumer=("unknown",)),)))
    assert codecs == ["sfpr"]
    assert not torch.allclose(got, want)
