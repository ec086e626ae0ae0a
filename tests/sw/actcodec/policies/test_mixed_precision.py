"""ActNN's levels in training: budgets, adaptation by layer and sample, signs kept, nothing left behind."""

import gc
import warnings
import weakref

import actcodec
import pytest
import torch
from actcodec.golden.floating.groups import sample_size
from actcodec.study import data, experiment
from actcodec.study.models import ResNet
from actcodec.training import policy
from cdu_tools.errors import MissingToolError, UserError
from torch import nn
from torch.nn import functional as F

NO_CUDA = pytest.mark.skipif(torch.cuda.is_available(), reason="is about machines without CUDA")


def recorded(mixed):
    """The forms that a policy's codec makes, as they are made."""
    forms, compress_with = [], mixed.codec.compress_with

    def recording(x, allocate):
        forms.append(compress_with(x, allocate))
        return forms[-1]

    mixed.codec.compress_with = recording
    return forms


def mean_bits(forms):
    sizes = [sample_size(form.shape) for form in forms]
    spent = sum(int(form.bits.sum()) * size for form, size in zip(forms, sizes, strict=True))
    return spent / sum(form.bits.numel() * size for form, size in zip(forms, sizes, strict=True))


def step(model, chosen, x, labels=None):
    model.zero_grad()
    with actcodec.compress_activations(model, chosen) as stats:
        y = model(x)
        loss = y.square().sum() if labels is None else F.cross_entropy(y, labels)
    loss.backward()
    return float(loss.detach()), stats


@pytest.mark.parametrize("bits", [1, 1.5, 2])
def test_every_step_keeps_the_budget(bits):
    model, mixed = ResNet(1, 10, width=8), policy("actnn-L3", bits=bits, interval=2)
    forms = recorded(mixed)
    for number, batch in enumerate((8, 8, 8, 5, 8)):
        forms.clear()
        x = torch.randn(batch, 1, 8, 8, generator=torch.Generator().manual_seed(number))
        _, stats = step(model, mixed, x, torch.arange(batch) % 10)
        assert len(forms) == sum("actnn-sample" in record.codec for record in stats.records) == len(mixed.layers)
        assert bits - 0.3 < mean_bits(forms) <= bits
        of_layers = sum(layer.bits * layer.values * layer.samples for layer in mixed.layers)
        assert of_layers / sum(layer.values * layer.samples for layer in mixed.layers) == pytest.approx(mean_bits(forms))


def test_gradients_of_a_linear_layer_are_unbiased():
    model, mixed = nn.Linear(300, 5), policy("actnn-L3", interval=1)
    x = torch.randn(6, 300, requires_grad=True)
    target = torch.randn(6, 5)

    def gradients(which):
        model.zero_grad()
        x.grad = None
        with actcodec.compress_activations(model, which):
            loss = F.mse_loss(model(x), target, reduction="sum")
        loss.backward()
        return model.weight.grad.double(), model.bias.grad.clone(), x.grad.clone()

    exact = gradients("none")
    draws = [gradients(mixed) for _ in range(150)]
    for _, bias, inputs in draws:
        # The layer's own weight is exact, so is what does not depend on its input.
        assert torch.equal(bias, exact[1])
        assert torch.equal(inputs, exact[2])
    errors = torch.stack([weight for weight, _, _ in draws]) - exact[0]
    assert errors.abs().max() > 0
    z = errors.mean(0) / (errors.std(0) / 150**0.5)
    assert abs(z.mean()) < 5 / 1500**0.5
    assert 0.7 < z.square().mean() < 1.4


class Branches(nn.Module):
    """Two convolutions have similar tensors; the output of one counts a thousand times as much."""

    def __init__(self):
        super().__init__()
        self.loud, self.quiet = nn.Conv2d(2, 2, 3), nn.Conv2d(2, 2, 3)

    def forward(self, x):
        return 1000 * self.loud(x + 1) + self.quiet(x + 2)


def test_layers_get_bits_by_their_gradients():
    model, mixed = Branches(), policy("actnn-L3", bits=3, interval=1)
    x = torch.randn(4, 2, 12, 12, requires_grad=True)
    for _ in range(2):
        step(model, mixed, x)
    bits = {layer.module: layer.bits for layer in mixed.layers}
    assert bits["loud"] == 5
    assert bits["quiet"] == 1


def test_samples_get_bits_by_ranges_and_by_gradients_that_were_seen():
    model, mixed = nn.Linear(64, 3), policy("actnn-L3", bits=2, interval=1000)
    forms = recorded(mixed)
    x = torch.rand(4, 64) * torch.tensor([[1.0], [1.0], [100.0], [1.0]])

    def one(samples, weights):
        mixed.set_samples(samples)
        model.zero_grad()
        with actcodec.compress_activations(model, mixed):
            loss = (model(x).sum(1) * torch.tensor(weights)).sum()
        loss.backward()
        return forms[-1].bits.tolist()

    first = one(torch.tensor([10, 11, 12, 13]), [1.0, 1e4, 1e-4, 1.0])
    assert first[2] == max(first) > 2  # by ranges alone
    again = one(torch.tensor([10, 11, 12, 13]), [1.0, 1.0, 1.0, 1.0])
    assert again[1] == max(again) > 2  # by the gradient of the step before
    assert again[2] == 1
    # The same samples at other places, and two that were never seen: the layer's average is theirs.
    moved = one(torch.tensor([5, 10, 6, 11]), [1.0, 1.0, 1.0, 1.0])
    assert sum(moved) == sum(again) == 8


def test_one_number_of_bits_for_samples_without_difference():
    model, mixed = nn.Linear(64, 3), policy("actnn-L3", bits=2, interval=1)
    forms = recorded(mixed)
    x = torch.rand(1, 64).expand(6, -1).contiguous()
    for _ in range(3):
        step(model, mixed, x)
    assert all(form.bits.tolist() == [2] * 6 for form in forms)


def test_runs_repeat():
    x, labels = torch.randn(8, 1, 8, 8), torch.arange(8)

    def run(mixed, seed):
        mixed.restart(seed)
        torch.manual_seed(1)
        model = ResNet(1, 10, width=8)
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        losses = []
        for number in range(3):
            mixed.set_samples(torch.arange(8) + 4 * number)
            losses.append(step(model, mixed, x, labels)[0])
            optimizer.step()
        return losses, mixed.layers

    mixed = policy("actnn-L3", interval=1, average=0.5)
    first = run(mixed, 3)
    assert run(mixed, 4)[0] != first[0]
    assert run(mixed, 3) == first
    assert run(policy("actnn-L3", interval=1, average=0.5), 3) == first


def live_tensors():
    return sum(issubclass(type(thing), torch.Tensor) for thing in gc.get_objects())


def test_nothing_of_a_step_lives_on():
    """Neither the graph nor, with shapes that keep changing, knowledge about earlier shapes is kept."""
    conv, mixed = nn.Conv1d(2, 3, 3), policy("actnn-L3", interval=1)
    counts = []
    gc.collect()
    gc.disable()
    try:
        for length in range(20, 44):
            with actcodec.compress_activations(conv, mixed):
                x = torch.randn(4, 2, length, requires_grad=True) * 1
                y = conv(x).square()
            y.sum().backward()
            dead = [weakref.ref(x), weakref.ref(y)]
            del x, y
            assert [reference() for reference in dead] == [None, None]
            if length in (28, 43):
                counts.append(live_tensors())
    finally:
        gc.enable()
    assert counts[1] <= counts[0] + 4


def test_forward_passes_without_backward_change_nothing():
    model, mixed = ResNet(1, 10, width=8), policy("actnn-L3", interval=1)
    x = torch.randn(4, 1, 8, 8)
    for _ in range(3):
        with actcodec.compress_activations(model, mixed):
            model(x)
    assert all(layer.bits == 2 for layer in mixed.layers)


@pytest.mark.parametrize("level", ["actnn-L1", "actnn-L2", "actnn-L3"])
def test_relu_keeps_its_signs_beside_the_values(level):
    """A code of few bits makes small values zero; ReLU must pass their gradients all the same."""
    conv = nn.Conv2d(4, 4, 1)
    x = torch.randn(2, 4, 16, 16, requires_grad=True)
    with actcodec.compress_activations(conv, level) as stats:
        y = F.relu(x * 1)
        loss = conv(y).sum()
    loss.backward()
    assert torch.equal(x.grad != 0, x > 0)
    (record,) = (record for record in stats.records if record.op == "relu")
    assert record.saved_by == ("relu", "conv")
    bits = actcodec.codec("brc").compress(y).nbytes
    codes = actcodec.codec("actnn-sample", bits=2 if level == "actnn-L3" else 4).compress(y).nbytes
    assert record.bytes_compressed == bits + codes
    assert stats.bytes_compressed == sum(r.bytes_compressed for r in stats.records)


def test_an_exact_user_takes_the_place_of_values_but_not_of_signs():
    rules = policy("actnn-L1").rules
    x = torch.randn(2, 4, 16, 16, requires_grad=True)
    with actcodec.compress_activations(nn.Module(), actcodec.Policy(rules, keep_signs=True)) as stats:
        y = F.relu(x * 1)
        (F.conv2d(y, torch.ones(1, 4, 1, 1, requires_grad=True)).sum() + y.square().sum()).backward()
    torch.testing.assert_close(x.grad, (x > 0) * (1 + 2 * x.detach()))
    (record,) = (record for record in stats.records if record.op == "relu")
    assert record.codec == "exact"
    assert record.bytes_compressed == y.numel() * 4 + actcodec.codec("brc").compress(y).nbytes


def test_levels_say_what_is_compressed():
    model = nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Dropout(0.5), nn.Linear(784, 3))
    x = torch.randn(4, 1, 16, 16)
    kept = {}
    for level in ("actnn-L0", "actnn-L1", "actnn-L2", "actnn-L3"):
        _, stats = step(model, level, x, torch.tensor([0, 1, 2, 0]))
        kept[level] = {row["op"]: row["codec"] for row in stats.tensors if row["op"] != "softmax"}
    assert set(kept["actnn-L0"].values()) == {"exact"}
    some = {"input": "actnn-sample", "conv": "exact", "relu": "brc", "mask": "bits", "dropout": "exact"}
    assert kept["actnn-L1"] == some
    assert kept["actnn-L2"] == kept["actnn-L3"] == some | {"conv": "actnn-sample", "dropout": "actnn-sample"}


@NO_CUDA
def test_levels_that_need_cuda_say_so():
    with pytest.warns(UserWarning, match="actnn-L4 swaps to host memory, .*: it is actnn-L3 here"):
        swapping = policy("actnn-L4", interval=1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mixed = policy("actnn-L3", interval=1)
    x, labels = torch.randn(4, 1, 8, 8), torch.arange(4)
    found = []
    for chosen in (mixed, swapping):
        torch.manual_seed(2)
        model = ResNet(1, 10, width=8)
        for _ in range(2):
            _, stats = step(model, chosen, x, labels)
        found.append((stats.bytes_compressed, [p.grad.tolist() for p in model.parameters()]))
    assert found[0] == found[1]
    with pytest.raises(MissingToolError, match=r"actnn-L5 is about the memory that CUDA's allocator holds, .*: use actnn-L3"):
        policy("actnn-L5")


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("level", ["actnn-L4", "actnn-L5"])
def test_swapping_changes_no_gradient(level):
    x, labels = torch.randn(4, 1, 16, 16).cuda(), torch.arange(4).cuda()
    found = []
    for name in ("actnn-L3", level):
        torch.manual_seed(2)
        model, chosen = ResNet(1, 10, width=8).cuda(), policy(name, interval=1)
        for _ in range(3):
            _, stats = step(model, chosen, x, labels)
        found.append((stats.bytes_compressed, [p.grad.cpu() for p in model.parameters()]))
    assert found[0][0] == found[1][0]
    for mine, other in zip(found[0][1], found[1][1], strict=True):
        torch.testing.assert_close(mine, other, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize(
    ("level", "options", "message"),
    [
        ("actnn-L0", {"bits": 2}, "codec 'actnn-L0' has no option 'bits': it has none"),
        ("actnn-L2", {"interval": 2}, "codec 'actnn-L2' has no option 'interval': use bits, group, rounding, seed"),
        ("actnn-L2", {"bits": 1.5}, "bits = 1.5 is not allowed"),
        ("actnn-L3", {"bits": 0.5}, "bits = 0.5 is not allowed: use a mean from 1 to 8"),
        ("actnn-L3", {"interval": 0}, "interval = 0 is not allowed: use 1 or more steps"),
        ("actnn-L3", {"average": 1}, "average = 1 is not allowed: use 0 to below 1"),
        ("actnn-L6", {}, "unknown codec 'actnn-L6'"),
    ],
)
def test_bad_options(level, options, message):
    with pytest.raises(UserError, match=message):
        policy(level, **options)


def test_a_training_run_keeps_its_budget():
    recipe = experiment.Recipe(width=8, steps=8, batch=64)
    mixed = policy("actnn-L3")
    run = experiment.train(recipe, data.load("digits", limit=640), "actnn-L3", mixed, 0)
    assert all(loss == loss and loss < 10 for loss in run.losses)
    total = sum(layer.values * layer.samples for layer in mixed.layers)
    assert 1.9 < sum(layer.bits * layer.values * layer.samples for layer in mixed.layers) / total <= 2
    assert 9 < run.ratio < 16
