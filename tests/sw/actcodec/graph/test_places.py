"""Ways in which people train: each works, with the losses of torch.compile alone, or is refused in one sentence."""

from __future__ import annotations

import copy
import io
import warnings

import actcodec
import pytest
import torch
from actcodec.graph.choices import KEEP
from actcodec.graph.fallback import NotCompiledWarning
from graph_steps import Found, Make, Steps, cosine, found
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

pytestmark = pytest.mark.usefixtures("graphs")
WIDTH = 128


class Network(nn.Module):
    """A network whose forward is a function of it and of what it is given."""

    def __init__(self, function, **modules: nn.Module) -> None:
        super().__init__()
        for name, module in modules.items():
            setattr(self, name, module)
        self.function = function

    def forward(self, *given: Tensor) -> Tensor:
        """Return what the function returns."""
        return self.function(self, *given)


def linear(count: int = 3) -> dict[str, nn.Module]:
    return {"abcdef"[place]: nn.Linear(WIDTH, WIDTH) for place in range(count)}


def perceptron() -> nn.Module:
    """Layers of torch alone."""
    return nn.Sequential(
        nn.Linear(WIDTH, WIDTH), nn.GELU(), nn.Linear(WIDTH, WIDTH), nn.LayerNorm(WIDTH), nn.Linear(WIDTH, WIDTH)
    )


class Block(nn.Module):
    """A block of a transformer, whose values are cut apart."""

    def __init__(self) -> None:
        super().__init__()
        self.norm, self.qkv, self.out = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 2 * WIDTH), nn.Linear(2 * WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        """Return the results of the block."""
        q, k, v = (part.view(*part.shape[:2], 4, -1).transpose(1, 2) for part in self.qkv(self.norm(x)).chunk(3, -1))
        h = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(h.transpose(1, 2).flatten(2))
        return self.down(F.gelu(self.up(x)))


def rows(model: nn.Module, size: tuple[int, ...] = (64, WIDTH)) -> Tensor:
    """Return the loss for a random batch."""
    return model(torch.randn(size)).float().square().mean()


def one_step(model: nn.Module) -> list[Tensor]:
    loss = rows(model)
    loss.backward()
    return [loss]


def check(make: Make, steps: Steps = one_step, *, beside: str | None = None) -> Found:
    """Compare with torch.compile alone, or with all values kept where torch.compile alone rounds elsewhere."""
    exact, got = found(make, steps, beside), found(make, steps, "int8")
    assert exact.coded == 0 < got.coded
    assert len(got.losses) == len(exact.losses)
    assert all(map(torch.equal, got.losses, exact.losses))
    assert cosine(got.gradients, exact.gradients) >= 0.999
    return got


@pytest.mark.parametrize(("make", "marked"), [(perceptron, False), (Block, True)])
def test_lengths_that_change(make, marked):
    def steps(model: nn.Module) -> list[Tensor]:
        losses = []
        for length in (32, 48, 80):
            x = torch.randn(4, length, WIDTH)
            if marked:
                torch._dynamo.mark_dynamic(x, 1)
            losses.append(model(x).square().mean())
            losses[-1].backward()
        return losses

    check(make, steps, beside=KEEP if marked else None)


def test_graph_breaks():
    def function(net, x):
        h = F.gelu(net.b(net.a(x).tanh()))
        torch._dynamo.graph_break()
        return F.gelu(net.d(net.c(h).tanh()))

    check(lambda: Network(function, **linear(4)))


def test_operations_in_place():
    """Between layers, so that no cut may come between a value and what writes into it."""

    def function(net, x):
        h = net.a(x.clone().mul_(2))
        h.relu_()
        h = net.b(h)
        h.add_(1)
        h[:, :4] = 0
        h.sin_()
        h = net.c(h)
        h += 1
        return F.hardtanh(h, inplace=True) + net.d(F.gelu(h))

    check(lambda: Network(function, **linear(4)))


def test_views_and_aliases():
    def function(net, x):
        h = net.a(x).tanh()
        left, right = h.chunk(2, -1)
        swapped = h.view(32, 2, WIDTH).transpose(0, 1)
        return net.b(torch.cat([left * F.silu(right), right], -1)) + net.c(swapped.reshape(64, WIDTH) * h)

    check(lambda: Network(function, **linear()))


def test_results_that_are_kept_too_and_views_of_them():
    """The model gives away a value and a view of it: they stay as they are, in the backward as well."""

    def function(net, x):
        h = net.a(x).tanh()
        return net.c(net.b(F.gelu(h)).tanh()), h, h.view(-1)

    def steps(model: nn.Module) -> list[Tensor]:
        y, h, flat = model(torch.randn(64, WIDTH))
        loss = (y * h).square().mean() + flat.square().mean()
        loss.backward()
        return [loss]

    check(lambda: Network(function, **linear()), steps)


def test_tied_weights_and_an_embedding():
    def function(net, tokens):
        return F.linear(net.a(net.embedding(tokens)).tanh(), net.embedding.weight)

    def steps(model: nn.Module) -> list[Tensor]:
        tokens = torch.randint(0, 96, (4, 32))
        loss = F.cross_entropy(model(tokens).flatten(0, 1), tokens.flatten())
        loss.backward()
        return [loss]

    check(lambda: Network(function, embedding=nn.Embedding(96, WIDTH), **linear(1)), steps)


def test_a_layer_that_is_called_several_times():
    check(lambda: Network(lambda net, x: net.a(net.a(net.a(x).tanh()).tanh()), **linear(1)))


def test_parameters_among_what_is_kept():
    """Parameters are read as they are: a gradient that only they decide has the same bits."""

    class Scaled(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.weight = nn.Linear(WIDTH, WIDTH), nn.Parameter(torch.randn(WIDTH, WIDTH))
            self.bias = nn.Parameter(torch.randn(WIDTH, WIDTH))

        def forward(self, x):
            return (F.gelu(F.gelu(self.a(x)) * self.weight.exp()) @ (self.weight * 2).cos() + self.bias * self.weight).sum(0)

    got = check(Scaled, one_step_of_sum)
    torch.manual_seed(0)
    assert torch.equal(got.gradients["bias"], Scaled().weight)


def one_step_of_sum(model: nn.Module) -> list[Tensor]:
    loss = model(torch.randn(WIDTH, WIDTH)).sum()
    loss.backward()
    return [loss]


def test_frozen_weights_with_small_trained_ones():
    """LoRA."""

    def function(net, x):
        h = (net.a(x) + net.up(net.down(x))).tanh()
        return F.gelu(net.b(h)) + net.up(net.down(F.silu(net.b(h))))

    def make() -> nn.Module:
        net = Network(function, down=nn.Linear(WIDTH, 8), up=nn.Linear(8, WIDTH), **linear(2))
        for name in ("a", "b"):
            getattr(net, name).requires_grad_(False)
        return net

    assert check(make).gradients.keys() == {"down.weight", "down.bias", "up.weight", "up.bias"}


def test_evaluation_in_between():
    def steps(model: nn.Module) -> list[Tensor]:
        losses = []
        for _ in range(2):
            model.train()
            losses += one_step(model)
            model.eval()
            losses.append(rows(model))
            with torch.no_grad():
                losses.append(rows(model))
            with torch.inference_mode():
                losses.append(rows(model).clone())
        return losses

    def make() -> nn.Module:
        return nn.Sequential(
            nn.Linear(WIDTH, WIDTH), nn.BatchNorm1d(WIDTH), nn.Dropout(0.2), nn.GELU(), nn.Linear(WIDTH, WIDTH)
        )

    check(make, steps)


def test_steps_of_several_batches():
    """Accumulation, and two forwards before a backward."""

    def steps(model: nn.Module) -> list[Tensor]:
        losses = [*one_step(model), *one_step(model)]
        pending = [rows(model), rows(model)]
        sum(pending).backward()
        return losses + pending

    check(perceptron, steps)


def test_a_gradient_of_the_input():
    def steps(model: nn.Module) -> list[Tensor]:
        x = torch.randn(64, WIDTH, requires_grad=True)
        loss = model(x).square().mean()
        loss.backward()
        model.of_input = x.grad
        return [loss]

    inputs = []

    def noting(model: nn.Module) -> list[Tensor]:
        losses = steps(model)
        inputs.append(model.of_input)
        return losses

    check(perceptron, noting, beside=KEEP)
    exact, got = inputs
    assert cosine({"": got}, {"": exact}) >= 0.999


def test_checkpoints_around():
    """A checkpoint counts what its hooks see: parts are compiled without them."""
    torch.manual_seed(0)
    model, x = perceptron(), torch.randn(64, WIDTH)
    model(x).square().mean().backward()
    exact = {name: parameter.grad for name, parameter in model.named_parameters()}
    model.zero_grad()
    actcodec.compiled(model, "int8", parts=3)
    checkpoint(model, x, use_reentrant=False).square().mean().backward()
    assert cosine({name: parameter.grad for name, parameter in model.named_parameters()}, exact) >= 0.999


def test_float64_is_kept_as_it_is():
    def steps(model: nn.Module) -> list[Tensor]:
        loss = model(torch.randn(64, WIDTH, dtype=torch.float64)).square().mean()
        loss.backward()
        return [loss]

    exact, got = (found(lambda: perceptron().double(), steps, policy) for policy in (KEEP, "int8"))
    assert got.coded == 0
    assert all(torch.equal(got.gradients[name], gradient) for name, gradient in exact.gradients.items())


@pytest.mark.parametrize("dropout", [0.0, 0.3])
def test_checkpoints_within(dropout):
    """Random numbers are the same when a checkpoint runs again."""

    def function(net, x):
        inner = checkpoint(lambda y: F.dropout(net.b(F.gelu(net.a(y))), dropout).tanh(), x, use_reentrant=False)
        return net.d(F.gelu(net.c(F.gelu(inner))))

    check(lambda: Network(function, **linear(4)))


def test_dropout():
    check(lambda: nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.Dropout(0.3), nn.GELU(), nn.Linear(WIDTH, WIDTH), nn.Dropout(0.1)))


def test_autocast():
    def steps(model: nn.Module) -> list[Tensor]:
        with torch.autocast("cpu", torch.bfloat16):
            loss = rows(model)
        loss.backward()
        return [loss]

    check(perceptron, steps)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_weights_of_two_bytes(dtype):
    def steps(model: nn.Module) -> list[Tensor]:
        loss = model(torch.randn(64, WIDTH).to(dtype)).float().square().mean()
        loss.backward()
        return [loss]

    check(lambda: nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.GELU(), nn.Linear(WIDTH, WIDTH)).to(dtype), steps)


def test_a_scaled_loss_that_overflows():
    """A scaler finds what is not finite, and the next step is as if nothing had been."""

    def steps(model: nn.Module) -> list[Tensor]:
        loss = rows(model)
        (loss * float("inf")).backward()
        assert not any(p.grad.isfinite().all() for p in model.parameters())
        model.zero_grad()
        return [loss.detach(), *one_step(model)]

    check(perceptron, steps)


CONVOLUTIONS = {
    "batch norm, max pool": lambda: [nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2)],
    "group norm, hardswish": lambda: [nn.GroupNorm(4, 16), nn.Hardswish(), nn.AvgPool2d(2)],
}


@pytest.mark.parametrize("layers", CONVOLUTIONS)
def test_convolutions(layers):
    """Compare losses closely: torch.compile alone lays values out in other strides, so that its sums round elsewhere."""

    def make() -> nn.Module:
        last = nn.Conv2d(16, 16, 3, padding=1), nn.Flatten(), nn.Linear(1024, 8)
        return nn.Sequential(nn.Conv2d(3, 16, 3, padding=1), *CONVOLUTIONS[layers](), *last)

    def steps(model: nn.Module) -> list[Tensor]:
        loss = rows(model, (8, 3, 16, 16))
        loss.backward()
        return [loss]

    check(make, steps, beside=KEEP)


def test_recurrent_cells():
    def function(net, x):
        h = x
        for _ in range(2):
            h, _state = net.cell(h)
        return net.a(h)

    check(lambda: Network(function, cell=nn.LSTMCell(WIDTH, WIDTH), **linear(1)))


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU, nn.RNN])
def test_recurrent_layers_are_warned_of(kind):
    """Values before the layer and in the caller of its function are coded; values behind it are kept."""

    class Recurrent(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.rnn, self.b = nn.Linear(WIDTH, WIDTH), kind(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)

        def forward(self, x):
            h = F.gelu(self.a(x).tanh())
            return F.gelu(self.b(self.rnn(h)[0].tanh()))

    name = f"a.rnn is an nn.{kind.__name__}, which torch.compile does not compile"

    def make() -> nn.Module:
        return Network(lambda net, x: F.gelu(net.b(net.a(x))), a=Recurrent(), b=nn.Linear(WIDTH, WIDTH))

    with pytest.warns(NotCompiledWarning, match=name):
        actcodec.compiled(make())
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", name)
        assert check(make).coded == 2  # a value of either function


def nested() -> nn.Sequential:
    return nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.GELU(), perceptron(), nn.Tanh())


#: ``torch.compile`` around a model, or around one that has it within.
AROUND = {
    "model": (perceptron, lambda model: model, torch.compile),
    "a model that has it": (nested, lambda model: model[2], torch.compile),
    "in place": (nested, lambda model: model[2], lambda model: model.compile() or model),
    "a function": (nested, lambda model: model[2], lambda model: torch.compile(lambda x: model(x).sin())),
    "reduce-overhead": (nested, lambda model: model[2], lambda model: torch.compile(model, mode="reduce-overhead")),
}


@pytest.mark.parametrize("way", AROUND)
def test_a_compiler_around(way):
    """It compiles what is around, and leaves the model's own graphs as they are."""
    make, inner, around = AROUND[way]

    def steps(model: nn.Module) -> list[Tensor]:
        called = around(model)
        return [*one_step(called), *one_step(called)]

    exact, got = found(make, steps, KEEP, inner), found(make, steps, "int8", inner)
    assert exact.coded == 0 < got.coded
    assert all(map(torch.equal, got.losses, exact.losses))
    assert cosine(got.gradients, exact.gradients) >= 0.999


def test_one_graph_around_is_refused():
    torch._dynamo.reset()
    model = nested()
    handle = actcodec.compiled(model[2])
    whole = torch.compile(model, fullgraph=True)
    with pytest.raises(torch._dynamo.exc.Unsupported, match=r"actcodec\.compiled compiles this model by itself"):
        whole(torch.randn(64, WIDTH))
    handle.close()
    assert "forward" not in vars(model[2])
    whole(torch.randn(64, WIDTH))


def test_a_second_derivative_is_refused_by_torch():
    """With fixed shapes: once torch compiled for any number of rows, it frees buffers and refuses ``create_graph``."""
    torch._dynamo.reset()
    model = perceptron()
    actcodec.compiled(model)
    x = torch.randn(64, WIDTH, requires_grad=True)
    (gradient,) = torch.autograd.grad(model(x).square().mean(), x, create_graph=True)
    with pytest.raises(RuntimeError, match="does not currently support double backward"):
        gradient.sum().backward()


def test_a_compiled_model_is_copied_and_saved():
    """A copy runs as it was written; a state dict has the names of the model."""
    model = perceptron()
    names = list(model.state_dict())
    actcodec.compiled(model)
    rows(model).backward()
    assert list(model.state_dict()) == names
    torch.save(model, file := io.BytesIO())
    file.seek(0)
    x = torch.randn(64, WIDTH)
    for other in (copy.deepcopy(model), torch.load(file, weights_only=False)):
        assert other._compiled_call_impl is None
        torch.testing.assert_close(other(x), model(x))
