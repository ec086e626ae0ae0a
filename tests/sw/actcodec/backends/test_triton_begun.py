"""Compression that begins with one saved tensor and ends with the next keeps the same, whatever the values are."""

import gc
import weakref

import actcodec
import pytest
import torch
from actcodec.saved.forms import Coded
from actcodec.study.launches import step_count
from actcodec.training import policy
from blocks_and_batch import case
from torch import nn
from torch.nn import functional as F
from triton_here import DEVICE, needs_kernels

pytestmark = needs_kernels
POLICIES = ("sfpr", "sfpr+zvc", "jpeg-act", "actnn-L2", "brc", "int8-rows", "division", "actnn", "mxfp4", "nvfp4")
#: Kinds of activations: unchanged, with far channels, rows far from zero, values that are not finite.
VALUES = ("near", "far", "infinite")


class Changed(nn.Module):
    """Adds a number to one channel."""

    def __init__(self, number):
        super().__init__()
        self.number = number

    def forward(self, x):
        added = torch.zeros_like(x)
        added[:, -1] = self.number
        return x + added


def network(values):
    number = {"near": 0.0, "far": 100.0, "infinite": float("inf")}[values]
    torch.manual_seed(0)
    return nn.Sequential(
        *(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 8, 3, padding=1), Changed(number)),
        *(nn.Conv2d(8, 8, 3, padding=1), Changed(number), nn.ReLU(), nn.Conv2d(8, 8, 3, padding=1), nn.AvgPool2d(2)),
        *(nn.Flatten(), nn.Linear(512, 64), Changed(number)),
        *(nn.Linear(64, 64), nn.GELU(), nn.Linear(64, 4)),
    ).to(DEVICE)


def step(values, name, backend, dtype=torch.float32, **options):
    """Return the gradients of a step, and what its statistics say of each tensor."""
    model = network(values).to(dtype)
    x, y = torch.randn(2, 3, 16, 16).to(DEVICE, dtype), torch.randint(4, (2,)).to(DEVICE)
    with actcodec.compress_activations(model, policy(name, backend=backend), **options) as stats:
        loss = F.cross_entropy(model(x), y)
    loss.backward()
    said = [(record.name, record.codec, record.bytes_compressed, record.choice) for record in stats.records]
    return [parameter.grad for parameter in model.parameters()], said


@pytest.mark.filterwarnings("ignore:.*kept exactly", "ignore:.*few bits")
@pytest.mark.parametrize("values", VALUES)
@pytest.mark.parametrize("name", POLICIES)
def test_gradients_and_statistics_are_those_of_tensors_compressed_as_a_whole(name, values, monkeypatch):
    found, said = step(values, name, "triton")
    monkeypatch.setattr("actcodec.training.compression.computes_on", lambda device: False)
    expected, said_too = step(values, name, "triton")
    assert said == said_too
    assert all(torch.equal(a, b) or (a != a).equal(b != b) for a, b in zip(expected, found, strict=True))
    if DEVICE == "cpu":
        by_torch, said_by_torch = step(values, name, "torch")
        assert said == said_by_torch
        assert all(torch.equal(a, b) or (a != a).equal(b != b) for a, b in zip(by_torch, found, strict=True))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_number_formats(dtype, monkeypatch):
    found, said = step("far", "sfpr", "triton", dtype)
    monkeypatch.setattr("actcodec.training.compression.computes_on", lambda device: False)
    expected, said_too = step("far", "sfpr", "triton", dtype)
    assert said == said_too
    assert all(map(torch.equal, expected, found))


@pytest.mark.parametrize("name", [name for name in POLICIES if name != "brc"])
def test_a_step_asks_nothing(name):
    model = network("near")
    x, y = torch.randn(2, 3, 16, 16).to(DEVICE), torch.randint(4, (2,)).to(DEVICE)
    found = step_count(model, policy(name, backend="triton"), lambda: F.cross_entropy(model(x), y))
    assert found.coded >= 5
    assert found.launches <= 12
    assert found.questions == 0, found.forward.questions + found.backward.questions


@pytest.mark.parametrize(("name", "most"), [("sfpr", 1 / 7), ("jpeg-act", 0), ("actnn-L2", 0)])
def test_a_step_of_attention_asks_seldom(name, most):
    """A tensor that is saved again in another shape ends at once."""
    model, loss = case("attention")
    found = step_count(model, policy(name, backend="triton"), loss)
    assert found.coded > 5
    assert found.questions <= most, found.forward.questions + found.backward.questions


def test_strict_contexts_name_the_module():
    with pytest.raises(actcodec.golden.sfpr.UnfitValuesError, match=r"^5: .*NaN or infinite"):
        step("infinite", "sfpr", "triton", nonfinite="raise")


def test_values_are_freed_when_the_next_tensor_is_saved_and_at_the_end():
    model = nn.Sequential(nn.Tanh(), nn.GELU(), nn.Tanh(), nn.GELU(), nn.Linear(64, 8)).to(DEVICE)
    alive = []

    def forget(module, inputs, output):
        alive.append(weakref.ref(output))

    for layer in model:
        layer.register_forward_hook(forget)
    x = torch.randn(4, 2, 64, device=DEVICE, requires_grad=True)
    gc.disable()
    try:
        with actcodec.compress_activations(model, "sfpr", backend="triton"):
            y = model(x)
            inside = sum(one() is not None for one in alive[:-1])
        assert inside <= 1
        assert not any(one() is not None for one in alive[:-1])
        y.sum().backward()
    finally:
        gc.enable()


def test_values_that_are_needed_again_may_not_have_changed():
    codec = actcodec.codec("sfpr", backend="triton")
    near, far = torch.randn(2, 3, 4, 16, device=DEVICE), torch.randn(2, 3, 4, 16, device=DEVICE) + 100
    expected = Coded(near, codec).tensor()
    forms = [Coded(x, codec, at_once=False) for x in (near, far)]
    assert all(form.begun for form in forms)
    near.zero_()
    forms[0].end()
    assert torch.equal(forms[0].tensor(), expected)
    far.zero_()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        forms[1].end()


def test_a_tensor_whose_form_is_larger_is_kept_exactly_as_it_was_saved():
    """Maps of one value are padded to eight."""
    for changed in (False, True):
        x = torch.randn(64, 3, 1, device=DEVICE, requires_grad=True)
        with actcodec.compress_activations(nn.Module(), "sfpr+zvc", backend="triton", min_bytes=0) as stats:
            z = x * 1.0
            y = torch.sin(z)
            if changed:
                z.detach().add_(1)
        assert [record.codec for record in stats.records] == ["exact"]
        if changed:
            with pytest.raises(RuntimeError, match="modified by an inplace operation"):
                y.sum().backward()
        else:
            y.sum().backward()
            assert torch.equal(x.grad, torch.cos(x.detach()))


@pytest.mark.parametrize("name", ["sfpr", "jpeg-act", "brc", "actnn-sample"])
def test_a_codec_with_its_own_compress_begins_nothing(name):
    codec = actcodec.codec(name, backend="triton")
    x = -torch.rand(2, 3, 8, 16, device=DEVICE) - 0.5
    assert Coded(x, codec, at_once=False).begun

    class Own(type(codec)):
        def compress(self, x):
            return super().compress(x.abs())

    form = Coded(x, Own(backend="triton"), at_once=False)
    assert not form.begun
    assert form.tensor().mean() > 0.5


def test_random_numbers_follow_the_order_of_tensors():
    """A tensor that is compressed again has the seed that it drew first."""
    tensors = [torch.randn(2, 4, 64, generator=torch.Generator().manual_seed(seed)).to(DEVICE) for seed in range(4)]
    tensors[1] += 100
    codecs = [actcodec.codec("actnn-sample", backend="triton", seed=3) for _ in range(2)]
    expected = [Coded(x, codecs[0]).tensor() for x in tensors]
    forms = []
    for x in tensors:
        forms.append(Coded(x, codecs[1], at_once=False))
        if len(forms) > 1:
            forms[-2].end()
    forms[-1].end()
    assert all(torch.equal(form.tensor(), values) for form, values in zip(forms, expected, strict=True))


def test_what_has_begun_ends_with_the_context_and_before_it_is_read():
    model = nn.Sequential(nn.GELU(), nn.Tanh(), nn.Linear(64, 8)).to(DEVICE)
    x = torch.randn(4, 2, 64, device=DEVICE, requires_grad=True)
    compression = actcodec.compress_activations(model, "sfpr", backend="triton")
    with compression:
        y = F.gelu(x)
        (grad,) = torch.autograd.grad(y.sum(), x)  # within the context
        assert grad.isfinite().all()
        z = model(x)
    assert all(record.bytes_compressed for record in compression.statistics.records)
    compression.__enter__()
    w = model(x)
    compression.__exit__(ZeroDivisionError, ZeroDivisionError(), None)
    z.sum().backward()
    expected, x.grad = x.grad, None
    w.sum().backward()
    assert torch.equal(x.grad, expected)


def test_autocast_changes_no_scale(monkeypatch):
    """Compression that is repeated with centres ends in places where autocast is on, and gives what it gives as a whole."""
    torch.manual_seed(1)
    model = nn.Sequential(nn.Conv2d(3, 8, 3), Changed(100.0), nn.Conv2d(8, 8, 3), nn.GELU()).to(DEVICE)
    x = torch.randn(2, 3, 16, 16, device=DEVICE)
    grads = []
    for as_a_whole in (False, True):
        model.zero_grad()
        if as_a_whole:
            monkeypatch.setattr("actcodec.training.compression.computes_on", lambda device: False)
        with torch.autocast(DEVICE, torch.bfloat16), actcodec.compress_activations(model, "sfpr", backend="triton"):
            y = model(x)
        y.float().square().sum().backward()
        grads.append([one.grad.clone() for one in model.parameters()])
    assert all(map(torch.equal, *grads))
