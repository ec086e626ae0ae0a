"""AC-GC in training: demands of layers, their times, and gradients that stay within e**2 * V**2."""

import copy
import gc
import weakref

import actcodec
import pytest
import torch
from actcodec.codecs.acgc.error_bounded import ErrorBoundedCodec
from actcodec.golden.sfpr import NonFiniteError
from actcodec.policies.bounds.bound_listener import BoundOptions
from actcodec.policies.bounds.error_bounds import ErrorBoundPolicy
from actcodec.policies.policy import Rule
from actcodec.study import data, experiment
from actcodec.study.models import ResNet
from actcodec.training import policy
from cdu_tools.errors import UserError
from torch import nn
from torch.nn import functional as F


def batch(*shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def step(model, chosen, x, g=None):
    """Forward, and backward with the gradient ``g`` at the result: no loss, which would save tensors of its own."""
    model.zero_grad()
    with actcodec.compress_activations(model, chosen, min_bytes=0):
        y = model(x)
    y.backward(batch(*y.shape, seed=5) if g is None else g)


class Behind(nn.Module):
    """A layer whose input is an activation with a history."""

    def __init__(self, *layers):
        super().__init__()
        self.layers = nn.Sequential(*layers)

    def forward(self, x):
        return self.layers((x * 1.0).requires_grad_())


LAYERS = {
    "linear": (lambda: nn.Linear(24, 10), (32, 24)),
    "linear, tokens": (lambda: nn.Linear(24, 10, bias=False), (4, 9, 24)),
    "conv": (lambda: nn.Conv2d(4, 6, 3, padding=1), (8, 4, 12, 12)),
    "conv, stride, groups": (lambda: nn.Conv2d(4, 6, 3, 2, 1, groups=2), (8, 4, 13, 13)),
    "conv, transposed": (lambda: nn.ConvTranspose2d(4, 6, 3, 2), (8, 4, 8, 8)),
    "batch norm": (lambda: nn.BatchNorm2d(4), (8, 4, 12, 12)),
    "layer norm": (lambda: nn.LayerNorm(24), (4, 9, 24)),
}


@pytest.mark.parametrize("independent", [False, True])
@pytest.mark.parametrize("name", LAYERS)
def test_gradients_of_real_layers_stay_within_the_bound(name, independent):
    """Statistics of the first step, the codec's own errors in the following ones; all by the plug-in."""
    make, shape = LAYERS[name]
    torch.manual_seed(1)
    model = Behind(make())
    chosen = policy("autoquantz", widths="any", interval=10**6, independent=independent)
    x = (batch(*shape) + 0.3).requires_grad_()
    wanted = model.layers[0].weight if "norm" not in name else x

    def gradient(which):
        x.grad = None
        step(model, which, x)
        return wanted.grad.double().clone()

    exact = gradient("none")
    first = gradient(chosen)
    assert chosen.layers[0].error is not None
    (layer,) = chosen.layers
    assert layer.values == x.numel()
    errors = [float((gradient(chosen) - exact).square().sum()) for _ in range(30)]
    part = sum(errors) / 30 / (0.5 * float(exact.square().sum()))
    assert 0 < part < 1
    if independent and "norm" not in name:
        assert part > 0.2
    # The default holds before there are statistics.
    assert float((first - exact).norm() / exact.norm()) < 0.02


def test_what_a_convolution_says_is_the_formula():
    conv, x = nn.Conv2d(3, 5, 3, stride=2, padding=1), batch(4, 3, 10, 10)
    g = batch(4, 5, 5, 5, seed=1)
    chosen = policy("autoquant", interval=1, conv_constant=2.0, variance_growth=0.1)
    step(conv, chosen, x, g)
    dw, m = conv.weight.grad.double().square().sum(), 4 * 10 * 10
    expected = (2.0 * 0.1 * dw * 4 / (9 * m * 3 * g.double().square().sum())).sqrt()
    assert chosen.layers[0].error == pytest.approx(float(expected), rel=1e-5)


def test_batches_of_other_sizes_count_with_their_own_size():
    linear, chosen = nn.Linear(6, 4), policy("autoquant", interval=1, window=1)
    for samples in (8, 3):
        g = batch(samples, 4, seed=1)
        step(linear, chosen, batch(samples, 6), g)
        expected = (0.25 * linear.weight.grad.double().square().sum() / (samples * 6 * g.double().square().sum())).sqrt()
        assert chosen.layers[0].error == pytest.approx(float(expected), rel=1e-5)


def test_statistics_come_every_interval_and_the_last_window_counts():
    linear, x = nn.Linear(6, 4), batch(8, 6)
    chosen = policy("autoquant", interval=3, window=2)
    seen, errors = [], []
    for number in range(10):
        g = batch(8, 4, seed=number) * 3.0**number
        step(linear, chosen, x, g)
        if number % 3 == 0:
            seen.append([float(t.double().square().sum()) for t in (linear.weight.grad, g)])
        errors.append(chosen.layers[0].error)
        last = seen[-2:]
        expected = (0.5 * 0.5 * sum(v for v, _ in last) / (8 * 6 * sum(w for _, w in last))) ** 0.5
        assert errors[-1] == pytest.approx(expected, rel=1e-5)
    assert len(set(errors)) == 4


class TwoReaders(nn.Module):
    """One tensor into two convolutions, or into others."""

    def __init__(self, first, second):
        super().__init__()
        self.first, self.second = first, second

    def forward(self, x):
        y = x * 1.0
        return torch.cat([self.first(y).flatten(1), self.second(y).flatten(1)], 1)


def error_of(model, x, g):
    chosen = policy("autoquant")
    step(model, chosen, x, g)
    (layer,) = chosen.layers
    return layer.error


def test_several_convolutions_share_and_several_kinds_take_the_least():
    torch.manual_seed(0)
    x = batch(4, 3, 8, 8).requires_grad_()
    one, other, norm = nn.Conv2d(3, 4, 3), nn.Conv2d(3, 2, 1), nn.BatchNorm2d(3)
    first, second = batch(4, 4 * 36), batch(4, 2 * 64, seed=1)
    error = error_of(TwoReaders(one, other), x, torch.cat([first, second], 1))
    weight = 4 * 64 * 3 * (9 * first.double().square().sum() + second.double().square().sum())
    allowed = sum(conv.weight.grad.double().square().sum() for conv in (one, other))
    assert error == pytest.approx(float((0.25 * allowed / weight).sqrt()), rel=1e-5)
    third = batch(4, 3 * 64, seed=2)
    alone = [error_of(Behind(layer, nn.Flatten()), x, g) for layer, g in ((one, first), (norm, third))]
    both = error_of(TwoReaders(one, norm), x, torch.cat([first, third], 1))
    assert both <= min(alone) * (1 + 1e-6)


def test_readers_without_a_bound_keep_the_default():
    """ELU reads the input of a convolution; its own bound is not known, so that about 8 bits are kept."""
    x = batch(4, 3, 8, 8).requires_grad_()
    torch.manual_seed(0)
    conv = nn.Conv2d(3, 4, 1)

    class Model(nn.Module):
        def forward(self, x):
            y = x * 1.0
            return torch.cat([conv(y), F.elu(y)], 1)

    chosen = policy("autoquant", variance_growth=1000.0, interval=1)
    for _ in range(2):
        step(Model(), chosen, x)
    (layer,) = chosen.layers
    assert layer.error is not None
    assert layer.bits > 8
    loose = policy("autoquant", variance_growth=1000.0, interval=1)
    for _ in range(2):
        step(Behind(conv), loose, x)
    assert loose.layers[0].bits < 6


OPERATIONS = {
    "scores": (lambda a, b: a @ b.transpose(1, 2), 2),
    "heads": (lambda a, b: a.view(4, 9, 4, 6).transpose(1, 2) @ b.view(4, 9, 4, 6).permute(0, 2, 3, 1), 2),
    "bmm": (lambda a, b: torch.bmm(a.transpose(1, 2), b), 2),
    "scaled": (lambda a, b: torch.baddbmm(torch.zeros(4, 9, 9), a, b.transpose(1, 2), alpha=0.2), 2),
    "einsum": (lambda a, b: torch.einsum("bik,bjk->bij", a, b), 2),
    "gate": (lambda a, b: a * b, 2),
    "group norm": (lambda a, b: F.group_norm(a.transpose(1, 2), 4), 1),
    "instance norm": (lambda a, b: F.instance_norm(a), 1),
    "rms norm": (lambda a, b: F.rms_norm(a, (24,)), 1),
    "gelu": (lambda a, b: F.gelu(a), 1),
    "silu": (lambda a, b: F.silu(a), 1),
    "tanh": (lambda a, b: torch.tanh(a), 1),
    "sigmoid": (lambda a, b: torch.sigmoid(a), 1),
    "cube": (lambda a, b: a**3, 1),
}


@pytest.mark.parametrize("independent", [False, True])
@pytest.mark.parametrize("name", OPERATIONS)
def test_operations_without_weights_stay_within_their_bound(name, independent):
    """The gradients of all activations, with errors of the codec's own in all that is saved."""
    run, tensors = OPERATIONS[name]

    class Model(nn.Module):
        def forward(self, a, b):
            return run(a * 1.0, b * 1.0)

    model = Model()
    a, b = batch(4, 9, 24).requires_grad_(), batch(4, 9, 24, seed=1).requires_grad_()
    chosen = policy("autoquantz", widths="any", interval=10**6, independent=independent)
    g = batch(*model(a, b).shape, seed=5)

    def gradients(which):
        with actcodec.compress_activations(model, which, min_bytes=0):
            y = model(a, b)
        return [x.double() for x in torch.autograd.grad(y, (a, b)[:tensors], g)]

    exact = gradients("none")
    gradients(chosen)
    assert len(chosen.layers) == tensors
    assert all(layer.bounded and layer.error is not None for layer in chosen.layers)
    errors = torch.zeros(tensors)
    for _ in range(20):
        errors += torch.tensor([float((x - y).square().sum()) for x, y in zip(gradients(chosen), exact, strict=True)])
    parts = errors / 20 / torch.tensor([0.5 * float(x.square().sum()) for x in exact])
    assert bool((parts > 0).all() and (parts < 1).all()), parts


def test_normalisation_by_running_statistics_has_no_bound():
    norm, x = nn.BatchNorm2d(3).eval(), batch(4, 3, 8, 8).requires_grad_()
    chosen = policy("autoquant", interval=1)
    for _ in range(2):
        step(Behind(norm), chosen, x)
    assert [layer.error for layer in chosen.layers] == [None]


def test_zero_and_infinite_gradients_teach_nothing():
    linear, x = nn.Linear(6, 4), batch(8, 6)
    chosen = policy("autoquant", interval=1)
    for factor in (0.0, float("inf"), float("nan")):
        step(linear, chosen, x, torch.full((8, 4), factor))
    assert chosen.layers[0].error is None
    step(linear, chosen, x)
    known = chosen.layers[0].error
    step(linear, chosen, x, torch.full((8, 4), float("inf")))
    assert chosen.layers[0].error == known > 0


def test_nan_in_an_activation_is_named():
    chosen = policy("autoquant", interval=1, nonfinite="raise")
    x = batch(8, 6)
    model = nn.Linear(6, 4)
    for _ in range(2):
        step(model, chosen, x)
    with pytest.raises(NonFiniteError, match=r"48 of 48 values .*: correct the values, or leave out"):
        step(model, chosen, x * float("nan"))


@pytest.mark.parametrize("autocast", [False, True])
def test_transformer_layer_learns_bounds_for_its_linear_and_norm_layers(autocast):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(16, 16), nn.LayerNorm(16), nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 16))
    chosen = policy("autoquantz", widths="any", interval=1)
    for number in range(3):
        model.zero_grad()
        with torch.autocast("cpu", torch.bfloat16, enabled=autocast), actcodec.compress_activations(model, chosen, min_bytes=0):
            y = model(batch(4, 5, 16, seed=number).requires_grad_())
        y.backward(batch(4, 5, 16, seed=5).to(y.dtype))
    known = {layer.module: layer.error is not None for layer in chosen.layers}
    assert known == {"0": True, "1": True, "2": True, "3": True, "4": True}


def test_hooks_leave_the_model_alone_and_nothing_of_a_step_lives_on():
    model, chosen = (
        nn.Sequential(nn.Conv2d(2, 3, 3), nn.BatchNorm2d(3), nn.ReLU(), nn.Conv2d(3, 1, 1)),
        policy("autoquant", interval=1),
    )
    before = {name: copy.copy(vars(module)) for name, module in model.named_modules()}
    gc.collect()
    gc.disable()
    try:
        for _ in range(3):
            with actcodec.compress_activations(model, chosen, min_bytes=0):
                x = batch(2, 2, 9, 9).requires_grad_() * 1
                y = model(x).sum()
            y.backward()
            dead = [weakref.ref(x), weakref.ref(y)]
            del x, y
            assert [reference() for reference in dead] == [None, None]
    finally:
        gc.enable()
    for name, module in model.named_modules():
        assert vars(module).keys() == before[name].keys()
    assert all(p._backward_hooks is None and p._post_accumulate_grad_hooks is None for p in model.parameters())


def test_relu_keeps_its_signs_beside_the_values():
    conv, x = nn.Conv2d(4, 4, 1), batch(2, 4, 16, 16).requires_grad_()
    chosen = policy("autoquant", interval=1, variance_growth=1000.0)
    for _ in range(2):
        x.grad = None
        with actcodec.compress_activations(conv, chosen, min_bytes=0):
            loss = conv(F.relu(x * 1)).sum()
        loss.backward()
    assert torch.equal(x.grad != 0, x > 0)


class Coarse(ErrorBoundedCodec):
    """A codec of the kind that others write: rounds to multiples of twice the error."""

    name = "coarse"

    def __init__(self):
        self.errors = []

    def compress_within(self, x, error):
        self.errors.append(error)
        step = 2 * (error if len(error) == 1 else error.view(-1, *[1] * (x.ndim - 2)))
        return actcodec.codec("none").compress((x / step).round() * step)

    def decompress(self, compressed):
        return compressed.decompress()


def test_any_codec_that_keeps_to_an_error_takes_part():
    codec = Coarse()
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Flatten(), nn.Linear(144, 2))
    chosen = ErrorBoundPolicy((Rule(codec),), interval=1)
    x = batch(8, 3, 8, 8)
    for _ in range(2):
        step(model, chosen, x)
    assert [len(error) for error in codec.errors] == [3, 4, 144, 1, 4, 1]
    assert all(error.dtype == torch.float32 for error in codec.errors)
    for dependent in (codec, actcodec.codec("autoquant", rounding="nearest")):
        with pytest.raises(
            UserError, match=f"the errors of codec '{dependent.name}' are not independent: use independent=False"
        ):
            ErrorBoundPolicy((Rule(dependent),), BoundOptions(independent=True))


def test_runs_repeat_and_restart_forgets():
    chosen, x = policy("autoquantz", interval=2), batch(8, 1, 8, 8)

    def run(seed):
        chosen.restart(seed)
        torch.manual_seed(1)
        model = ResNet(1, 10, width=8)
        optimizer = torch.optim.SGD(model.parameters(), 1e-3)
        for _ in range(3):
            step(model, chosen, x)
            optimizer.step()
        return model.stem.weight.tolist(), chosen.layers

    first = run(3)
    assert run(4)[0] != first[0]
    assert run(3) == first
    chosen.restart(0)
    assert chosen.layers == []


def test_a_network_trains_with_bounds_for_all_its_layers():
    recipe = experiment.Recipe(width=8, steps=8, batch=32)
    digits = data.load("digits", limit=256)
    exact = experiment.train(recipe, digits, "none", policy("none"), 0)
    chosen = policy("autoquantz", widths="any", interval=4)
    run = experiment.train(recipe, digits, "autoquantz", chosen, 0)
    assert all(layer.error is not None for layer in chosen.layers)
    assert run.losses[-1] == pytest.approx(exact.losses[-1], abs=0.1)
    assert run.ratio > 4


class GatedBlock(nn.Module):
    """Attention of single products and a gate, between normalisations of both kinds."""

    def __init__(self, width=16):
        super().__init__()
        self.first, self.second = nn.LayerNorm(width), nn.RMSNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.gate, self.down = (nn.Linear(width, width) for _ in range(3))

    def forward(self, x):
        q, k, v = self.qkv(self.first(x)).chunk(3, -1)
        x = x + self.out(torch.softmax(0.25 * (q @ k.transpose(1, 2)), -1) @ v)
        y = self.second(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


def residual_block():
    return nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.GroupNorm(4, 8), nn.SiLU(), nn.Conv2d(8, 8, 3, padding=1))


@pytest.mark.parametrize(("make", "shape"), [(GatedBlock, (4, 12, 16)), (residual_block, (4, 3, 8, 8))])
def test_blocks_have_bounds_for_all_that_they_save(make, shape):
    torch.manual_seed(0)
    model, x = make(), batch(*shape).requires_grad_()
    chosen = policy("autoquantz", widths="any", interval=1)

    def gradient(which):
        step(model, which, x)
        return torch.cat([parameter.grad.flatten() for parameter in model.parameters()])

    exact = gradient("none")
    gradient(chosen)
    found = gradient(chosen)
    assert chosen.layers
    assert all(layer.bounded for layer in chosen.layers)
    assert 0.95 < float(torch.cosine_similarity(exact, found, 0)) < 1


def test_fused_attention_has_no_bound():
    class Attention(nn.Module):
        def forward(self, x):
            q, k, v = (x * factor for factor in (1.0, 2.0, 3.0))
            return F.scaled_dot_product_attention(q, k, v)

    chosen = policy("autoquant", interval=1)
    for _ in range(2):
        step(Attention(), chosen, batch(2, 2, 9, 16).requires_grad_())
    assert chosen.layers
    assert not any(layer.bounded for layer in chosen.layers)
