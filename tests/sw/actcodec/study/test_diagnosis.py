"""The diagnosis: gradient errors against gradients computed another way, and nothing left behind."""

import random

import actcodec
import pytest
import torch
from actcodec.codecs import Codec, codec
from actcodec.study import Diagnosis, diagnose
from actcodec.study.models import ResNet
from actcodec.training import EXACT, Policy, Rule, policy
from actcodec.training.compression import LOSS
from cdu_tools.errors import UserError
from torch import nn
from torch.nn import functional as F


def small_resnet():
    torch.manual_seed(3)
    model = ResNet(1, 10, width=8)
    x, labels = torch.rand(16, 1, 16, 16), torch.arange(16) % 10
    return model, lambda: F.cross_entropy(model(x), labels)


def gradient(model, step, chosen=None):
    """All gradients of one step in one vector, running statistics left as they are."""
    before = {name: buffer.clone() for name, buffer in model.named_buffers()}
    model.zero_grad()
    if chosen is None:
        step().backward()
    else:
        with actcodec.compress_activations(model, chosen):
            loss = step()
        loss.backward()
    for name, buffer in model.named_buffers():
        buffer.copy_(before[name])
    found = torch.cat([parameter.grad.flatten().double() for parameter in model.parameters()])
    model.zero_grad()
    return found


def test_linear_layer_against_the_formula():
    """The gradient of W for the loss sum(C * (x W^T)) is C^T x."""
    torch.manual_seed(0)
    model, x, c = nn.Linear(64, 5, bias=False), torch.randn(8, 64), torch.randn(8, 5)
    found = diagnose(model, lambda: (model(x) * c).sum(), Policy((Rule("sfpr", consumer=("linear",)),)))
    decoded = codec("sfpr").compress(x).decompress()
    expected = torch.linalg.norm(c.T.double() @ (x - decoded).double()) / torch.linalg.norm(c.T.double() @ x.double())
    (row,) = found.tensors
    assert row.gradient_error == pytest.approx(float(expected), rel=1e-4)
    assert found.gradient_error == row.gradient_error == found.independent_error
    assert (row.operation, row.saved_by, row.shape, row.codec) == ("input", ("linear",), (8, 64), "sfpr")
    assert row.relative_error == pytest.approx(float((x - decoded).double().norm() / x.double().norm()))
    assert found.gradient_norm == pytest.approx(float(torch.linalg.norm(c.T @ x)), rel=1e-5)


#: Convolutions that read the result of a ReLU: a rule has to match both, or the tensor is kept exactly for the latter.
READERS = {
    "relu": ("blocks.0.conv1",),
    "blocks.0.relu1": ("blocks.0.conv2",),
    "blocks.0.relu2": ("blocks.1.conv1", "blocks.1.shortcut.0"),
    "blocks.1.relu1": ("blocks.1.conv2",),
}


@pytest.mark.parametrize("name", ["jpeg-act", "sfpr"])
def test_every_tensor_alone_against_a_policy_for_it_alone(name):
    """A deterministic codec on one module's tensor only, through the public context."""
    model, step = small_resnet()
    chosen = Policy((Rule(EXACT, producer=("softmax", "loss")), Rule(name)))
    found = diagnose(model, step, chosen)
    exact = gradient(model, step)
    assert len(found.tensors) >= 12
    compared = 0
    for row in found.tensors:
        if row.codec != name:  # does not fit
            continue
        modules = (row.module, *READERS.get(row.module, ()))
        only = Policy([Rule(name, module=module, producer=(row.operation,)) for module in modules])
        alone = gradient(model, step, only)
        assert row.gradient_error == pytest.approx(float((alone - exact).norm() / exact.norm()), rel=1e-6)
        compared += 1
    assert compared >= 11
    together = gradient(model, step, chosen)
    assert found.gradient_error == pytest.approx(float((together - exact).norm() / exact.norm()), rel=1e-6)
    assert found.ratio == pytest.approx(found.bytes_original / found.bytes_compressed)


class Dropping(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.Dropout(0.5), nn.Flatten(), nn.Linear(256, 3)
        )

    def forward(self, x):
        return self.layers(x)


@pytest.mark.parametrize("keep_signs", [False, True])
def test_an_exact_codec_has_no_error_whatever_the_step_draws(keep_signs):
    """Dropout draws the same masks and batch norm starts from the same statistics in every pass."""
    torch.manual_seed(5)
    model, x = Dropping(), torch.randn(32, 1, 8, 8)
    rules = (Rule("brc", producer=("relu",), consumer=("relu",)), Rule("none"))
    found = diagnose(model, lambda: model(x).square().mean(), Policy(rules, keep_signs=keep_signs))
    assert [row.gradient_error for row in found.tensors] == [0.0] * len(found.tensors)
    assert found.gradient_error == 0.0
    assert len(found.tensors) == 5


def test_nothing_is_changed():
    torch.manual_seed(6)
    model, x = Dropping(), torch.randn(6, 1, 8, 8)
    model(x).sum().backward()
    state = {name: value.clone() for name, value in model.state_dict().items()}
    buffers = {name: id(buffer) for name, buffer in model.named_buffers()}
    grads = [(parameter.grad, parameter.grad.clone()) for parameter in model.parameters()]
    random_state = torch.get_rng_state()
    diagnose(model, lambda: model(x).square().mean(), "actnn", bits=2)
    assert torch.equal(torch.get_rng_state(), random_state)
    assert all(torch.equal(value, state[name]) for name, value in model.state_dict().items())
    assert {name: id(buffer) for name, buffer in model.named_buffers()} == buffers
    for parameter, (grad, values) in zip(model.parameters(), grads, strict=True):
        assert parameter.grad is grad
        assert torch.equal(grad, values)
        assert not parameter._backward_hooks


def test_a_tensor_of_two_operations_is_one_row():
    model, step = small_resnet()
    found = diagnose(model, step, "jpeg-act")
    both = [row for row in found.tensors if row.saved_by == ("relu", "conv")]
    assert [row.module for row in both] == ["relu", "blocks.0.relu1", "blocks.0.relu2", "blocks.1.relu1"]
    assert {row.codec for row in both} == {"sfpr+zvc"}
    signs = [row for row in found.tensors if row.codec == "brc"]
    assert [row.gradient_error for row in signs] == [0.0]
    with actcodec.compress_activations(model, "jpeg-act") as statistics:
        step()
    counted = [record for record in statistics.records if record.codec not in (EXACT, LOSS)]
    assert [(row.module, row.codec, row.bytes_compressed) for row in found.tensors] == [
        (record.name, record.codec, record.bytes_compressed) for record in counted
    ]


def test_signs_lost_to_few_bits_hurt_more_than_signs_kept():
    model, step = small_resnet()
    rules = (Rule("brc", producer=("relu",), consumer=("relu",)), Rule(codec("actnn", bits=1)))
    lost, kept = (diagnose(model, step, Policy(rules, keep_signs=keep)) for keep in (False, True))
    pairs = [(a, b) for a, b in zip(lost.tensors, kept.tensors, strict=True) if a.saved_by == ("relu", "conv")]
    assert all(a.gradient_error > b.gradient_error and a.ratio > b.ratio for a, b in pairs)
    assert len(pairs) == 4


def test_a_policy_that_adapts_takes_one_step():
    model, step = small_resnet()
    adapting = policy("actnn-L3", bits=2)
    calls, observer = [], adapting.observer
    adapting.observer = lambda: calls.append(1) or observer()
    first = diagnose(model, step, adapting)
    assert len(calls) == 1
    assert len(adapting.layers) == sum(row.codec == "actnn-sample" for row in first.tensors)
    second = diagnose(model, step, adapting)  # it has seen gradients now
    assert [row.bytes_compressed for row in second.tensors] != [row.bytes_compressed for row in first.tensors]


def test_table_data_and_mean():
    model, step = small_resnet()
    found = diagnose(model, step, "sfpr")
    lines = found.table().splitlines()
    assert len(lines) == len(found.tensors) + 3
    assert lines[0] == f"ratio of everything that autograd keeps: {found.ratio_of_everything:.2f}"
    assert lines[-1].startswith("all together")
    assert found.to_data()["tensors"][0]["shape"] == [16, 1, 16, 16]
    assert found.worst[0].gradient_error == max(row.gradient_error for row in found.tensors)
    mean = Diagnosis.mean([found, found])
    assert mean.bytes_original == 2 * found.bytes_original
    assert mean.gradient_error == pytest.approx(found.gradient_error)
    assert mean.ratio == pytest.approx(found.ratio)
    assert mean.ratio_of_everything == pytest.approx(found.ratio_of_everything) != found.ratio
    other = nn.Linear(8, 2)
    with pytest.raises(UserError, match="not of the same tensors"):
        Diagnosis.mean([found, diagnose(other, lambda: other(torch.ones(3, 8)).sum(), "actnn")])
    with pytest.raises(UserError, match="no diagnosis"):
        Diagnosis.mean([])


def test_progress_is_told_pass_by_pass():
    model, x = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 2)), torch.rand(32, 8)
    seen = []
    diagnose(model, lambda: model(x).square().sum(), "actnn", on_pass=lambda done, total: seen.append((done, total)))
    assert seen == [(2, 4), (3, 4), (4, 4)]


class Counting(Codec):
    """Count the compressed tensors."""

    name = "counting"

    def __init__(self):
        self.calls = 0

    def compress(self, x):
        self.calls += 1
        return codec("sfpr").compress(x)

    def decompress(self, compressed):
        return compressed.decompress()


def test_everything_is_compressed_once():
    model, step = small_resnet()
    counting = Counting()
    found = diagnose(model, step, Policy((Rule(counting, consumer=("conv",)),)))
    assert counting.calls == len(found.tensors)


@pytest.mark.parametrize("which", ["none", "vdnn", "sfpr"])
def test_bytes_are_those_of_the_policy(which):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Dropout(0.2), nn.Linear(64, 5))
    x, labels = torch.randn(64, 32), torch.arange(64) % 5

    def step():
        return F.cross_entropy(model(x), labels)

    with actcodec.compress_activations(model, which) as stats:
        step()
    found = diagnose(model, step, which)
    assert (found.everything_original, found.everything_compressed) == stats.bytes_of_everything


def test_bad_steps():
    model = nn.Linear(4, 2)
    with pytest.raises(UserError, match="norm 0"):
        diagnose(model, lambda: model(torch.zeros(2, 4)).sum() * 0)
    with pytest.raises(UserError, match="no loss that depends"):
        diagnose(model, lambda: torch.zeros(()))
    with pytest.raises(UserError, match="a tensor of one value"):
        diagnose(model, lambda: model(torch.ones(2, 4)))
    draws = random.Random(0)

    with pytest.raises(UserError, match="same tensors in every pass"):
        diagnose(model, lambda: model(torch.rand(draws.randint(2, 10**4), 4)).sum(), "actnn")


@pytest.mark.parametrize("which", ["blpa", "jpeg-gmc"])
def test_groups_are_diagnosed_as_they_are_kept(which):
    """Bytes and gradient are those of a training step; each tensor of a group is one of the diagnosis, leaky signs too."""
    torch.manual_seed(0)
    first = [nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 8, 3, padding=1)]
    model = nn.Sequential(*first, nn.BatchNorm2d(8), nn.LeakyReLU(0.25), nn.Conv2d(8, 4, 3, padding=1))
    x = torch.randn(4, 3, 16, 16)
    found = diagnose(model, lambda: model(x).square().mean(), which)
    with actcodec.compress_activations(model, which) as stats:
        loss = model(x).square().mean()
    assert (found.bytes_compressed, found.bytes_original) == (stats.bytes_compressed, stats.bytes_original)
    got = torch.autograd.grad(loss, list(model.parameters()))
    want = torch.autograd.grad(model(x).square().mean(), list(model.parameters()))
    distance = torch.cat([(one - two).flatten() for one, two in zip(got, want, strict=True)]).norm()
    assert found.gradient_error == pytest.approx(float(distance) / found.gradient_norm, rel=1e-4)
    assert len(found.tensors) == sum(record.codec != LOSS for record in stats.records)
    assert all(
        0 < tensor.gradient_error < 1 for tensor in found.tensors if "conv" in tensor.saved_by or "norm" in tensor.saved_by
    )
