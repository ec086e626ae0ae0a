"""torch.compile (S23): compiled functions run as they were written while a context is open, with one warning, and no longer."""

import shutil
import subprocess
import sys
import threading
import warnings

import actcodec
import pytest
import torch
from actcodec.training.compiled import EAGER
from torch import nn
from torch.nn import functional as F

INDUCTOR = pytest.param(
    "inductor", marks=[pytest.mark.campaign, pytest.mark.skipif(not shutil.which("g++"), reason="needs a C++ compiler: g++")]
)


@pytest.fixture
def dynamo():
    dynamo = pytest.importorskip("torch._dynamo", reason="needs torch's compiler")
    dynamo.reset()
    dynamo.utils.counters.clear()
    yield dynamo
    dynamo.reset()


def convnet():
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 4, 3), nn.Flatten(), nn.Linear(4 * 36, 5)
    )


def trained(build, steps=3):
    """Losses, gradients and the account of some steps; ``build(model)`` gives the function of a step."""
    model = convnet()
    step = build(model)
    for number in range(steps):
        x = torch.randn(4, 3, 8, 8, generator=torch.Generator().manual_seed(number))
        loss, stats = step(x)
        model.zero_grad()
        loss.backward()
    return loss.detach(), [p.grad.clone() for p in model.parameters()], stats.tensors


def inside(model):
    policy = actcodec.training.policy("sfpr")

    def step(x):
        with actcodec.compress_activations(model, policy) as stats:
            loss = model(x).square().mean()
        return loss, stats

    return step


def outside(backend, model):
    compression, compiled = actcodec.compress_activations(model, "sfpr"), torch.compile(model, backend=backend)
    compiled(torch.randn(4, 3, 8, 8)).sum().backward()

    def step(x):
        with compression as stats:
            loss = compiled(x).square().mean()
        return loss, stats

    return step


@pytest.mark.parametrize("backend", ["eager", "aot_eager", INDUCTOR])
@pytest.mark.parametrize("opened", ["outside", "inside"])
def test_s23_compiled_code_gives_the_bits_of_the_model_as_it_is(dynamo, caplog, opened, backend):
    if opened == "outside":

        def plain(model):
            model(torch.randn(4, 3, 8, 8))  # batch normalisation sees that batch too
            return inside(model)

        wanted = trained(plain)
    else:
        wanted = trained(inside)
    with pytest.warns(UserWarning, match="runs operation by operation while activations are compressed"):
        loss, gradients, tensors = trained(
            lambda model: outside(backend, model) if opened == "outside" else torch.compile(inside(model), backend=backend)
        )
    assert tensors == wanted[2]
    assert torch.equal(loss, wanted[0])
    assert all(torch.equal(a, b) for a, b in zip(gradients, wanted[1], strict=True))
    assert not [record.getMessage() for record in caplog.records if "recompile" in record.getMessage()]
    assert not dynamo.utils.counters["unimplemented"] or opened == "inside"


def test_s23_nothing_is_compiled_for_a_context(dynamo):
    """Twenty steps, batches of several sizes: the one frame is that of the step before the context."""
    model = convnet()
    step = outside("eager", model)
    assert dynamo.utils.counters["frames"]["total"] == 1
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for batch in (*range(1, 11), *range(1, 11)):
            step(torch.randn(batch, 3, 8, 8))[0].backward()
    assert dynamo.utils.counters["frames"]["total"] == 1


def test_s23_a_compiled_step_is_given_up_once(dynamo):
    model = convnet()
    step = torch.compile(inside(model), backend="eager")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        step(torch.randn(2, 3, 8, 8))[0].backward()
        first = dynamo.utils.counters["frames"]["total"]
        for _ in range(12):
            step(torch.randn(2, 3, 8, 8))[0].backward()
    assert dynamo.utils.counters["frames"]["total"] == first < 10


def test_s23_one_warning_for_a_whole_training(dynamo):
    """With the filter that Python has by itself."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        trained(lambda model: outside("eager", model), steps=5)
        trained(lambda model: outside("eager", model), steps=5)
    assert len([one for one in caught if "torch.compile" in str(one.message)]) == 1


def test_s23_compiled_code_runs_again_after_the_context(dynamo):
    ran = []

    def backend(graph, inputs):
        return lambda *arguments: ran.append(1) or graph(*arguments)

    model = convnet()
    compiled = torch.compile(model, backend=backend)
    compression = actcodec.compress_activations(model, "sfpr")
    with pytest.warns(UserWarning, match=r"leave out torch\.compile"), compression:
        compiled(torch.randn(4, 3, 8, 8)).sum().backward()
    assert not ran
    compiled(torch.randn(4, 3, 8, 8)).sum().backward()
    assert ran == [1]
    with pytest.raises(ValueError, match="mine"), compression:
        raise ValueError("mine")
    compiled(torch.randn(4, 3, 8, 8))
    assert ran == [1, 1]


def test_s23_no_warning_where_nothing_compiled_runs(dynamo):
    model = convnet()
    torch.compile(nn.Linear(3, 3), backend="eager")(torch.randn(2, 3))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with actcodec.compress_activations(model, "sfpr"):
            model(torch.randn(4, 3, 8, 8)).sum().backward()


def test_s23_contexts_of_threads_share_the_stance(dynamo):
    """Entered by one, then by another; left by the first, then by the second: eager until then, and as before after it."""
    ran, entered, left = [], threading.Event(), threading.Event()
    compiled = torch.compile(lambda x: x + 1, backend=lambda graph, _: lambda *a: ran.append(1) or graph(*a))

    def other():
        with EAGER:
            entered.set()
            left.wait(60)

    thread = threading.Thread(target=other)
    with EAGER:
        thread.start()
        assert entered.wait(60)
    compiled(torch.ones(2))
    assert not ran
    left.set()
    thread.join()
    compiled(torch.ones(2))
    assert ran == [1]


def test_s23_a_compiler_that_is_loaded_later():
    """Within a context that knew of none: the next one, a step later, or within it, knows."""
    program = (
        "import torch, sys; from actcodec.training.compiled import EAGER; ran = []\n"
        "backend = lambda graph, _: lambda *arguments: ran.append(1) or graph(*arguments)\n"
        "with EAGER:\n"
        "    before = 'torch._dynamo' in sys.modules\n"
        "    compiled = torch.compile(lambda x: x + 1, backend=backend)\n"
        "    with EAGER: compiled(torch.ones(2))\n"
        "print(before, len(ran)); compiled(torch.ones(2)); print(len(ran))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300, check=False)
    assert done.stdout.split() == ["False", "0", "1"], done.stderr


def test_s23_fullgraph(dynamo):
    """A step that cannot be one graph names the reason; a model that is one graph runs uncompiled."""
    model = convnet()
    x = torch.randn(4, 3, 8, 8)
    with pytest.raises(Exception, match=r"use torch\.compile without fullgraph=True") as caught:
        torch.compile(inside(model), backend="eager", fullgraph=True)(x)
    assert type(caught.value).__module__.startswith("torch._dynamo")
    compiled = torch.compile(model, backend="eager", fullgraph=True)
    with pytest.warns(UserWarning, match="operation by operation"), actcodec.compress_activations(model, "sfpr") as stats:
        F.cross_entropy(compiled(x), torch.arange(4)).backward()
    assert stats.ratio > 2


def test_s23_backward_in_compiled_code_decompresses_as_it_is(dynamo):
    model = convnet()
    with actcodec.compress_activations(model, "jpeg-act"):
        loss = model(torch.randn(4, 3, 8, 8)).square().mean()
    torch.compile(lambda x: x.backward(), backend="eager")(loss)
    assert not [name for name in dynamo.utils.counters["unimplemented"] if "actcodec" in name]
    assert all(p.grad is not None for p in model.parameters())
