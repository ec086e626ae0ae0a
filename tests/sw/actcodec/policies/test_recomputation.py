"""Recomputed tensors take no bytes, and have the values that their own function computes from the reconstruction."""

import actcodec
import pytest
import torch
from actcodec.policies.groups.recomputation import RECOMPUTED_NAME, RecomputingPolicy
from actcodec.training import CodecSpec, Rule, policy
from torch import nn
from torch.nn import functional as F
from torch.utils._python_dispatch import TorchDispatchMode

EIGHT_BITS = CodecSpec("int8-rows")
#: Recomputed tensors of :func:`blocks`: results of layer norm and GELU; x over its root mean square, and that times the weight;
#: tanh of GELU written out, one more than that, half of the gate, and their product; its product with the other; the last layer
#: norm's result.
FOLLOWS = ["norm", "linear", "gelu", "mul", "mul", "linear", "tanh", "sum", "mul", "linear", "mul", "mul", "norm"]


def recomputing(codec=EIGHT_BITS):
    return RecomputingPolicy([Rule(codec)])


class Gates(nn.Module):
    """Parts of current transformers, written out: root mean squares, gates, GELU by tanh."""

    def __init__(self, width=32):
        super().__init__()
        self.weight = nn.Parameter(torch.rand(width) + 0.5)
        self.gate, self.up, self.down = nn.Linear(width, 64), nn.Linear(width, 64), nn.Linear(64, width)

    def forward(self, x):
        hidden = self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6))
        gate = self.gate(hidden)
        gelu = 0.5 * gate * (1.0 + torch.tanh(0.8 * (gate + 0.04 * torch.pow(gate, 3.0))))
        return x + self.down(gelu * self.up(hidden))


def blocks(width=32):
    norm = nn.Sequential(nn.Linear(width, width), nn.LayerNorm(width), nn.Linear(width, 64), nn.GELU(), nn.Linear(64, width))
    return nn.Sequential(norm, Gates(width), nn.LayerNorm(width), nn.Linear(width, 4))


def gradients(model, x, chosen):
    model.zero_grad()
    with actcodec.compress_activations(model, chosen, measure_error=True) as statistics:
        loss = model(x).square().mean()
    loss.backward()
    found = [parameter.grad.flatten() for parameter in model.parameters() if parameter.grad is not None]
    return torch.cat(found).double(), statistics


def test_with_an_exact_codec_the_gradient_is_exact():
    torch.manual_seed(0)
    model, x = blocks(), torch.randn(4, 8, 32)
    wanted, _ = gradients(model, x, policy("none"))
    found, statistics = gradients(model, x, recomputing("bypass"))
    assert torch.equal(found, wanted)
    assert [record.op for record in statistics.records if record.codec == RECOMPUTED_NAME] == FOLLOWS


def test_what_follows_takes_no_bytes_and_has_the_error_of_its_source():
    torch.manual_seed(0)
    model, x = blocks(), torch.randn(4, 8, 32)
    wanted, whole = gradients(model, x, RecomputingPolicy([Rule(EIGHT_BITS)]))
    plain, each = gradients(model, x, policy("int8-rows"))
    follows = [record for record in whole.records if record.codec == RECOMPUTED_NAME]
    assert [record.op for record in follows] == FOLLOWS
    # The roots of mean squares are saved by the products themselves.
    assert sum(record.bytes_compressed for record in follows) == 0
    assert all(record.relative_error < 0.02 for record in follows)
    assert whole.bytes_compressed < 0.6 * each.bytes_compressed
    exact, _ = gradients(model, x, policy("none"))
    assert (wanted - exact).norm() < 2 * (plain - exact).norm()


def unseen(y):
    with torch.no_grad():
        y.add_(1)


@pytest.mark.parametrize("change", [lambda y: y.add_(1), unseen], ids=["in place", "unseen"])
def test_a_result_that_is_changed_has_a_copy_of_its_own(change):
    torch.manual_seed(0)
    first, last, x = nn.Linear(32, 32), nn.Linear(32, 4), torch.randn(8, 32)

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.last = first, last

        def forward(self, x):
            y = F.silu(self.first(x)).clone()
            z = torch.tanh(y.neg())
            z = z + 0  # tanh's own result may not be changed
            change(z)
            return self.last(z)

    model = Model()
    wanted, _ = gradients(model, x, policy("none"))
    found, statistics = gradients(model, x, recomputing("bypass"))
    assert torch.equal(found, wanted)
    assert statistics.records[-1].codec != RECOMPUTED_NAME


def test_in_place_activations_are_no_source_of_themselves():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(32, 32), nn.SiLU(inplace=True), nn.Linear(32, 32), nn.ReLU(inplace=True), nn.Linear(32, 4))
    x = torch.randn(8, 32)
    wanted, _ = gradients(model, x, policy("none"))
    found, _ = gradients(model, x, recomputing("bypass"))
    assert torch.equal(found, wanted)


def test_a_parameter_that_changes_before_backward_is_noticed():
    model, x = nn.Sequential(nn.Linear(32, 32), nn.LayerNorm(32), nn.Linear(32, 4)), torch.randn(8, 32)
    with actcodec.compress_activations(model, recomputing()):
        loss = model(x).square().mean()
    with torch.no_grad():
        model[1].bias.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


def test_a_source_that_is_needed_exactly_is_counted_beside_its_copy():
    """The source's square root tolerates no errors, so the source is kept exactly; GELU's result follows from the copy."""
    torch.manual_seed(0)
    first, last = nn.Linear(32, 64), nn.Linear(64, 4)

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.last = first, last

        def forward(self, x):
            h = self.first(x).abs() + 1
            y = self.last(F.gelu(h))
            return y.sum() + torch.rsqrt(h).sum() + h.log().sum()

    _, statistics = gradients(Model(), torch.randn(8, 32), recomputing())
    source = next(record for record in statistics.records if "gelu" in record.saved_by)
    assert source.codec == "exact"
    assert source.bytes_compressed > source.bytes_original  # itself, and the copy
    assert any(record.codec == RECOMPUTED_NAME for record in statistics.records)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_under_autocast(dtype):
    torch.manual_seed(0)
    model, x = blocks(), torch.randn(4, 8, 32)

    def step(chosen):
        model.zero_grad()
        with actcodec.compress_activations(model, chosen), torch.autocast("cpu", dtype):
            loss = model(x).float().square().mean()
        loss.backward()
        return torch.cat([parameter.grad.flatten() for parameter in model.parameters()]).double()

    wanted, found = step(policy("none")), step(recomputing())
    assert F.cosine_similarity(wanted, found, 0) > 0.999


class Attention(nn.Module):
    """One attention over tokens, within torch's module or by the function, of queries and keys that are large."""

    def __init__(self, within, gain, width=32):
        super().__init__()
        self.norm, self.out = nn.LayerNorm(width), nn.Linear(width, 4)
        self.attention = nn.MultiheadAttention(width, 2, batch_first=True)
        self.within = within
        with torch.no_grad():
            self.attention.in_proj_weight[: 2 * width] *= gain

    def forward(self, x):
        hidden = self.norm(x)
        if self.within:
            return self.out(self.attention(hidden, hidden, hidden, need_weights=False)[0])
        heads = F.linear(hidden, self.attention.in_proj_weight).unflatten(-1, (3, 2, -1)).unbind(2)
        query, key, value = (part.transpose(1, 2) for part in heads)
        found = F.scaled_dot_product_attention(query, key, value)
        return self.out(self.attention.out_proj(found.transpose(1, 2).flatten(2)))


@pytest.mark.parametrize("within", [True, False], ids=["module", "function"])
def test_sharp_attention_keeps_its_gradient(within):
    """Large queries and keys in four bits leave less of the gradient, however well all other tensors are kept."""
    torch.manual_seed(0)
    model, x = Attention(within, 4), torch.randn(8, 24, 32)
    exact, _ = gradients(model, x, policy("none"))

    def likeness(name, **options):
        found, statistics = gradients(model, x, policy(name, **options))
        return float(F.cosine_similarity(exact, found, 0)), statistics

    blunt, _ = likeness("nvfp4")
    sharpened, statistics = likeness("transformer")
    eight, _ = likeness("transformer-nvfp4")
    assert sharpened > 0.99
    assert eight > 0.98
    assert 1 - blunt > 8 * (1 - sharpened)
    recomputed = [record.op for record in statistics.records if record.codec == RECOMPUTED_NAME]
    assert ("attention" in recomputed) == (not within)


def test_a_mask_of_an_attention_stays_a_mask():
    """One row of truth values for all queries, few beside the result."""
    torch.manual_seed(0)
    project, x, mask = nn.Linear(32, 96), torch.randn(4, 24, 32), torch.rand(1, 1, 1, 24) < 0.5

    class Masked(nn.Module):
        def __init__(self):
            super().__init__()
            self.project, self.out = project, nn.Linear(32, 4)

        def forward(self, x):
            query, key, value = (part.unflatten(-1, (2, 16)).transpose(1, 2) for part in self.project(x).chunk(3, -1))
            return self.out(F.scaled_dot_product_attention(query, key, value, mask).transpose(1, 2).flatten(2))

    model = Masked()
    wanted, _ = gradients(model, x, policy("none"))
    found, statistics = gradients(model, x, recomputing("bypass"))
    torch.testing.assert_close(found, wanted, rtol=1e-5, atol=1e-7)
    assert any(record.op == "attention" and record.codec == RECOMPUTED_NAME for record in statistics.records)


class Products(TorchDispatchMode):
    """Count products of matrices."""

    count = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.count += func.overloadpacket in (torch.ops.aten.addmm, torch.ops.aten.mm, torch.ops.aten.bmm)
        return func(*args, **(kwargs or {}))


def products_of(backward, **options):
    """Return the number of products in a backward pass."""
    with Products() as products:
        backward(**options)
    return products.count


class Conv1D(nn.Module):
    """A linear layer as GPT-2 has it: a product of rows, in a view."""

    def __init__(self, inputs, outputs):
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.randn(inputs, outputs) / 6), nn.Parameter(torch.randn(outputs))

    def forward(self, x):
        return torch.addmm(self.bias, x.view(-1, x.shape[-1]), self.weight).view(*x.shape[:-1], -1)


class ByMatrix(nn.Module):
    """The same by the operator, without a bias."""

    def __init__(self, inputs, outputs):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(inputs, outputs) / 6)

    def forward(self, x):
        return x @ self.weight


@pytest.mark.parametrize("layer", [nn.Linear, Conv1D, ByMatrix])
@pytest.mark.parametrize("codec", ["bypass", "int8-rows"])
def test_what_a_layer_widens_is_computed_once_more(layer, codec):
    """Gelu's input and its result follow from one product, also in a second backward pass."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.LayerNorm(32), layer(32, 128), nn.GELU(approximate="tanh"), nn.Linear(128, 32), nn.Linear(32, 48))
    x = torch.randn(4, 8, 32, requires_grad=True)
    wanted, _ = gradients(model, x, policy("none"))
    without = products_of(model(x).square().mean().backward)
    with actcodec.compress_activations(model, recomputing(codec)) as statistics:
        loss = model(x).square().mean()
    for _ in range(2):
        model.zero_grad()
        assert products_of(loss.backward, retain_graph=True) == without + 1
        found = torch.cat([parameter.grad.flatten() for parameter in model.parameters()]).double()
        assert torch.equal(found, wanted) if codec == "bypass" else F.cosine_similarity(found, wanted, 0) > 0.999
    wide = [record for record in statistics.records if record.shape[-1] == 128]
    assert [record.op for record in wide] == ["linear", "gelu"]
    assert all(record.codec == RECOMPUTED_NAME and not record.bytes_compressed for record in wide)
    narrow = next(record for record in statistics.records if record.saved_by == ("linear",) and record.op == "linear")
    assert narrow.codec == codec  # 48 values of 32 are no widening, nor are 32 of 128


def test_a_widened_result_has_a_copy_where_its_input_has_none():
    """Weights that are not trained keep no input; of two layers that widen one after the other only one is computed again."""
    torch.manual_seed(0)
    first, second = nn.Linear(8, 32), nn.Linear(32, 64)
    frozen = nn.Sequential(
        nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 8), first.requires_grad_(False), nn.GELU(), nn.Linear(32, 4)
    )
    chain = nn.Sequential(nn.Linear(8, 32), nn.GELU(), second, nn.GELU(), nn.Linear(64, 4))
    for model, kept in ((frozen, [(16, 32)]), (chain, [(16, 32)])):
        x = torch.randn(16, 8)
        wanted, _ = gradients(model, x, policy("none"))
        found, statistics = gradients(model, x, recomputing("bypass"))
        assert torch.equal(found, wanted)
        wide = [record.shape for record in statistics.records if record.shape[-1] >= 32 and record.codec == "bypass"]
        assert wide == kept


@pytest.mark.parametrize("policy", ["transformer", "transformer-nvfp4"])
def test_signs_of_relu_behind_a_widening_layer_are_kept(policy):
    """One bit per value; without ``keep_signs`` they are those of the recomputed result."""
    torch.manual_seed(0)
    net, x = nn.Sequential(nn.LayerNorm(64), nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 8)), torch.randn(512, 64)

    def slopes(**options):
        with actcodec.compress_activations(net, policy, **options) as statistics:
            (gradient,) = torch.autograd.grad(net[3](relu := net[2](net[1](net[0](x)))).sum(), net[1].bias)
        return gradient, (relu > 0).float(), statistics.ratio_of_everything

    gradient, positive, ratio = slopes()
    torch.testing.assert_close(gradient, positive.sum(0) * net[3].weight.detach().sum(0))
    rounded, _, greater = slopes(keep_signs=False)
    assert not torch.allclose(rounded, gradient)
    assert greater > ratio
