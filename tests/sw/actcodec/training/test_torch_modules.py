"""Modules of torch.nn, and models as their users write them."""

import pytest
import torch
from codecs_for_tests import ExactCodec
from torch import nn
from torch.nn import functional as F
from torch.nn.utils import parametrizations
from training_step import assert_trains, codecs_of, compressed_step, eight_bits, gradient_error, plain_step


class UNet(nn.Module):
    """Two levels with skip concatenation."""

    def __init__(self):
        super().__init__()
        self.down1, self.down2, self.bottom = self._double(3, 8), self._double(8, 16), self._double(16, 32)
        self.up2, self.up1 = nn.ConvTranspose2d(32, 16, 2, 2), nn.ConvTranspose2d(16, 8, 2, 2)
        self.merge2, self.merge1 = self._double(32, 16), self._double(16, 8)
        self.head = nn.Conv2d(8, 2, 1)

    @staticmethod
    def _double(channels, width):
        first = nn.Sequential(nn.Conv2d(channels, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU(inplace=True))
        return nn.Sequential(first, nn.Conv2d(width, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU(inplace=True))

    def forward(self, x):
        high = self.down1(x)
        middle = self.down2(F.max_pool2d(high, 2))
        low = self.bottom(F.max_pool2d(middle, 2))
        middle = self.merge2(torch.cat([middle, self.up2(low)], 1))
        high = self.merge1(torch.cat([high, self.up1(middle)], 1))
        return self.head(high)


class Recurrent(nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.layers = kind(16, 32, 2, batch_first=True, dropout=0.1)
        self.head = nn.Linear(32, 5)

    def forward(self, x):
        return self.head(self.layers(x)[0][:, -1])


class Encoder(nn.Module):
    def __init__(self, **options):
        super().__init__()
        self.layers = nn.TransformerEncoder(nn.TransformerEncoderLayer(32, 4, 64, batch_first=True, **options), 2)
        self.head = nn.Linear(32, 5)

    def forward(self, x):
        return self.head(self.layers(x).mean(1))


def unet_loss(model):
    return F.cross_entropy(model(torch.randn(2, 3, 32, 32)), torch.randint(0, 2, (2, 32, 32)))


def sequence_loss(model):
    width = 16 if isinstance(model, Recurrent) else 32
    return F.cross_entropy(model(torch.randn(4, 12, width)), torch.tensor([0, 1, 2, 3]))


@eight_bits
def test_unet(which, options, bound):
    step = assert_trains(UNet(), unet_loss, which, options, bound, least_ratio=3.5)
    assert {row["op"] for row in step.stats.tensors} >= {"cat", "conv", "relu", "pool"}
    assert {row["op"] for row in step.stats.tensors if row["codec"] == "loss"} == {"softmax"}
    assert "exact" not in {row["codec"] for row in step.stats.tensors}


@eight_bits
@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU, nn.RNN])
def test_recurrent_networks(kind, which, options, bound):
    step = assert_trains(Recurrent(kind), sequence_loss, which, options, bound, least_ratio=2.5)
    assert codecs_of(step.stats, op="mask") == {"bits"}  # mask of the dropout between the layers


@eight_bits
@pytest.mark.parametrize("activation", ["relu", "gelu"])
def test_transformer_encoder(activation, which, options, bound):
    step = assert_trains(Encoder(activation=activation), sequence_loss, which, options, bound, least_ratio=3)
    # Each layer has attention, and dropout after it, in the middle, and at the end.
    assert sum(row["count"] for row in step.stats.tensors if row["op"] == "mask") == 2 * 4
    assert codecs_of(step.stats, op="softmax") == {"exact", "loss"}


@eight_bits
@pytest.mark.parametrize("dropout", [0.0, 0.2])
@pytest.mark.parametrize("need_weights", [False, True])
def test_multihead_attention_with_an_infinite_mask(need_weights, dropout, which, options, bound):
    model = nn.ModuleList([nn.Linear(32, 32), nn.MultiheadAttention(32, 4, dropout=dropout, batch_first=True)])
    mask = torch.full((12, 12), -torch.inf).triu(1)

    def loss_of(m):
        x = m[0](torch.randn(4, 12, 32))
        return m[1](x, x, x, attn_mask=mask, need_weights=need_weights)[0].square().mean()

    step = assert_trains(model, loss_of, which, options, bound, least_ratio=1.5)
    assert any(row["op"] == "mask" for row in step.stats.tensors) == (dropout > 0)


def test_mask_of_an_attention_is_exact_even_where_it_is_learnt():
    """One number of -1e38 in the range of a bias would leave nothing of the others."""
    bias = nn.Parameter(torch.randn(1, 2, 5, 5))
    infinite = torch.full((5, 5), -torch.inf).triu(1)
    attention = F.scaled_dot_product_attention
    for attend in (
        lambda q, k, v: attention(q, k, v, infinite),
        lambda q, k, v: attention(q, k, v, attn_mask=infinite),
        lambda q, k, v: attention(q, k, v, attn_mask=bias + torch.full((5, 5), -1e38).triu(1)),
    ):
        model = nn.Linear(8, 24)

        def loss_of(m, attend=attend):
            return attend(*m(torch.randn(2, 2, 5, 8)).chunk(3, -1)).square().mean()

        step = compressed_step(model, loss_of, "sfpr", S=1.0, measure_error=True, compress_loss=True)
        assert gradient_error(step, plain_step(model, loss_of)) < 0.04
        assert all(row["relative_error"] < 0.04 for row in step.stats.tensors)


def test_both_factors_of_a_product_of_activations_are_compressed():
    model = nn.ModuleList([nn.Linear(8, 8), nn.Linear(8, 8)])
    for product in (torch.bmm, torch.matmul, torch.Tensor.__matmul__, lambda a, b: torch.baddbmm(torch.zeros(1), a, b)):
        codec = ExactCodec()
        compressed_step(model, lambda m, p=product: p(m[0](torch.ones(4, 6, 8)), m[1](torch.ones(4, 8, 8))).sum(), codec)
        assert sorted(codec.given) == [(4, 6, 8), (4, 8, 8), (24, 8), (32, 8)]


def test_addmm_compresses_the_activation_and_no_weight():
    """``addmm(bias, x, weight)``: the activation is not the first argument; nor is the weight a parameter in bfloat16."""
    weight, bias = nn.Parameter(torch.randn(8, 5)), nn.Parameter(torch.randn(5))
    holder = nn.ParameterList([weight, bias])
    for frozen in (False, True):
        weight.requires_grad_(not frozen)
        for autocast in (False, True):
            codec = ExactCodec()

            def loss_of(m, autocast=autocast):
                with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
                    return torch.addmm(m[1], torch.ones(6, 8, requires_grad=True) * 1, m[0]).float().sum()

            compressed_step(holder, loss_of, codec)
            assert codec.given == ([] if frozen else [(6, 8)])


def test_factors_for_several_values_are_exact():
    """Gates, rotary tables, and the root mean square of a normalisation written by hand."""
    gate, x = torch.rand(4, 8, 1, 1, requires_grad=True), torch.randn(4, 8, 6, 6, requires_grad=True)
    table = torch.randn(1, 1, 6, 6)
    for product in (
        lambda: (x * 2) * (gate * 1),
        lambda: (gate * 1) * (x * 2),
        lambda: (x * 2) / (gate + 1),
        lambda: (x * 2) * table,
    ):
        step = compressed_step(nn.Module(), lambda _, p=product: p().square().sum(), "sfpr")
        small = [row for row in step.stats.tensors if row["shape"] in ([4, 8, 1, 1], [1, 1, 6, 6])]
        assert [row["codec"] for row in small] == ["exact"]
        assert codecs_of(step.stats, shape=[4, 8, 6, 6]) == {"sfpr"}


@pytest.mark.parametrize(
    "norm",
    [
        nn.GroupNorm(2, 8),
        nn.InstanceNorm2d(8, affine=True),
        nn.LayerNorm([8, 8, 8]),
        nn.RMSNorm([8, 8, 8]),
        nn.SyncBatchNorm(8),
    ],
    ids=lambda norm: type(norm).__name__,
)
@eight_bits
def test_normalisations(norm, which, options, bound):
    if isinstance(norm, nn.SyncBatchNorm):
        norm.eval()  # trains on CUDA only
    model = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), norm, nn.SiLU(), nn.Conv2d(8, 4, 3))
    target = torch.randn(4, 4, 6, 6)
    step = assert_trains(model, lambda m: F.mse_loss(m(torch.randn(4, 3, 8, 8)), target), which, options, bound, least_ratio=2)
    assert {record.saved_by for record in step.stats.records if record.codec in ("exact", "loss")} == {("loss",)}


@pytest.mark.parametrize("wrapper", ["weight_norm", "spectral_norm", "orthogonal"])
def test_parametrised_weights_are_never_compressed(wrapper):
    wrap = getattr(parametrizations, wrapper)
    model = nn.Sequential(wrap(nn.Linear(12, 12)), nn.Tanh(), wrap(nn.Conv1d(6, 6, 1)))
    codec = ExactCodec()
    compressed_step(model, lambda m: m(torch.randn(5, 6, 12)).sum(), codec)
    assert sorted(codec.given) == [(5, 6, 12), (30, 12)]


@eight_bits
def test_channels_last(which, options, bound):
    """The same codes give the same gradients, up to the last bits where torch computes in another order."""
    model = UNet().to(memory_format=torch.channels_last)

    def loss_of(m):
        x = torch.randn(2, 3, 32, 32).to(memory_format=torch.channels_last)
        y = m(x)
        assert y.is_contiguous(memory_format=torch.channels_last)
        return F.cross_entropy(y, torch.randint(0, 2, (2, 32, 32)))

    assert_trains(model, loss_of, which, options, bound, least_ratio=3.5)


def test_complex_numbers_and_integers_pass_through():
    model = nn.ModuleDict({"embedding": nn.Embedding(10, 8), "bag": nn.EmbeddingBag(10, 8), "filter": nn.Linear(8, 8)})

    def loss_of(m):
        indices = torch.randint(0, 10, (4, 6))
        spectrum = torch.fft.rfft(m["filter"](m["embedding"](indices))) * torch.randn(5, dtype=torch.complex64)
        return (torch.fft.irfft(spectrum * spectrum) + m["bag"](indices)[:, None]).abs().sum()

    codec = ExactCodec()
    step = compressed_step(model, loss_of, codec)
    assert gradient_error(step, plain_step(model, loss_of)) == 0
    assert {row["dtype"] for row in step.stats.tensors} == {"float32"}
    assert gradient_error(compressed_step(model, loss_of, "sfpr", S=1.0), plain_step(model, loss_of)) < 0.04
