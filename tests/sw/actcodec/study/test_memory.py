"""Memory of steps on fake tensors, beside the allocator's events and torch's own tracker."""

import copy
from functools import partial

import actcodec
import pytest
import torch
from actcodec.policies.recommended import measured
from actcodec.saved.allocations import allocations
from actcodec.study.live_storages import BACKWARD, UPDATE, LiveStorages, StoragePlace
from actcodec.study.memory import OPTIMIZERS, blocks, check_policy, predict
from actcodec.study.memory_subject import Subject, of_script, without_values
from cdu_tools.errors import UserError
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils.checkpoint import checkpoint


class Layers(nn.Module):
    """Four blocks of a pair of linear layers."""

    def __init__(self, width=64):
        super().__init__()
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)) for _ in range(4)
        )
        self.checkpoints = False

    def forward(self, x):
        for block in self.blocks:
            x = x + (checkpoint(block, x, use_reentrant=False) if self.checkpoints else block(x))
        return x.square().mean()


def subject(model, *data, family=""):
    mode = FakeTensorMode(allow_non_fake_inputs=True)
    without_values(model, mode)
    fakes = tuple(mode.from_tensor(one) for one in data)
    return Subject("own", model, lambda count: fakes, model, family, mode, True)


def peak_and_kept(model, *data):
    model(*data).backward()
    model.zero_grad(set_to_none=True)
    return allocations(lambda: model(*data).backward()).peak, allocations(lambda: model(*data)).kept


X = torch.randn(128, 64)


@pytest.mark.parametrize("checkpoints", [False, True])
def test_a_step_with_checkpoints_takes_what_is_predicted(checkpoints):
    model = Layers()
    model.checkpoints = checkpoints
    peak, kept = peak_and_kept(model, X)
    model.checkpoints = False
    found = predict(subject(model, X), "checkpoint" if checkpoints else "none")
    # The loss itself, a number, and states of random numbers of checkpoints.
    assert found.kept == pytest.approx(kept, rel=0.01, abs=6000 * 4 * checkpoints)
    assert found.step == pytest.approx(peak, rel=0.05)


def test_torchs_own_tracker_has_the_same_peak():
    from torch.distributed._tools.mem_tracker import MemTracker

    with FakeTensorMode():
        model, x = Layers(), torch.randn(128, 64)
        tracker = MemTracker()
        tracker.track_external(model, x)
        with tracker:
            model(x).backward()
        theirs = tracker.get_tracker_snapshot("peak")[torch.device("cpu")]["Total"]
        model.zero_grad(set_to_none=True)
        mine = LiveStorages(model)
        with mine:
            loss = model(x)
            mine.phase = BACKWARD
            loss.backward()
    state = sum(one.numel() * 4 for one in (*model.parameters(), x))
    assert mine.peak + state == theirs


@pytest.mark.parametrize(("optimizer", "states"), [("none", 0), ("sgd", 0), ("momentum", 1), ("adamw", 2)])
def test_states_of_optimizers_are_there_before_the_step(optimizer, states):
    model = Layers()
    size = sum(one.numel() * 4 for one in model.parameters())
    found = predict(subject(model, X), optimizer=optimizer)
    assert found.state == pytest.approx((1 + states) * size + X.numel() * 4, rel=0.001)
    assert found.peak >= found.state + size  # gradients
    assert all(one.grad is None for one in model.parameters())


def test_an_update_with_temporaries_of_every_parameter_is_the_peak_of_a_small_batch():
    small = X[:1]
    fused, foreach = (predict(subject(Layers(), small), optimizer=name) for name in ("adamw", "adamw-foreach"))
    assert foreach.place.phase == UPDATE
    assert foreach.peak > fused.peak
    assert set(OPTIMIZERS) == {"none", "sgd", "momentum", "adamw", "adamw-foreach"}


def test_a_policy_keeps_its_measured_part():
    plain, coded = (predict(subject(Layers(), X, family="GPT/BERT"), name) for name in ("none", "sfpr"))
    (row,) = [one for one in measured() if one.policy.name == "sfpr" and not one.policy.options]
    # The batch and the loss are kept as they are in neither.
    assert plain.kept / coded.kept == pytest.approx(row.families["GPT/BERT"].ratio, rel=0.1)
    assert coded.peak < plain.peak


def test_policies_without_bytes_or_a_family_are_refused():
    with pytest.raises(UserError, match="unknown policy 'sparr': did you mean sfpr"):
        check_policy("sparr", "CNN")
    with pytest.raises(UserError, match="name the kind of network with --family, CNN"):
        check_policy("sfpr", "")
    with pytest.raises(UserError, match="policy 'compiled-int8' has no --budget here: leave it out"):
        check_policy("compiled-int8", "", 0.5)


def test_blocks_are_the_outermost_elements_that_consist_of_modules(torchvision):
    model = Layers()
    assert blocks(model) == list(model.blocks)
    resnet = torchvision.models.resnet18()
    assert [type(one).__name__ for one in blocks(resnet)] == ["BasicBlock"] * 8
    own = nn.Sequential(nn.Sequential(nn.Linear(4, 4), nn.GELU()), nn.Sequential(Layers()), nn.Linear(4, 4))
    assert blocks(own) == [own[0], own[1][0]]
    with pytest.raises(UserError, match="the model has no blocks"):
        predict(subject(nn.Sequential(nn.Linear(64, 64), nn.Flatten(0)), X), "checkpoint")


def test_blocks_compiled_one_by_one_take_what_is_predicted():
    model = Layers()
    plain, alone = (predict(subject(model, X), name) for name in ("none", "compiled-blocks"))
    assert alone.kept <= plain.kept
    model = Layers()
    for block in model.blocks:
        block.compile()
    peak, kept = peak_and_kept(model, X)
    assert alone.kept == pytest.approx(kept, rel=0.02)
    assert alone.step == pytest.approx(peak, rel=0.05)


@pytest.mark.parametrize("form", ["int8", "int4-group", pytest.param("nvfp4", marks=pytest.mark.campaign)])
def test_a_model_that_is_compiled_with_a_format_takes_what_is_predicted(form):
    def loss(model, x):
        return model(x).square().mean()

    model, x = nn.Sequential(Wide(), Wide(), Wide()), torch.randn(512, 64)
    mode = FakeTensorMode(allow_non_fake_inputs=True)
    real = copy.deepcopy(model)
    without_values(model, mode)
    one = Subject("own", model, lambda count: (mode.from_tensor(x),), partial(loss, model), "", mode, True)
    plain, found = (predict(one, name) for name in ("compiled", f"compiled-{form}"))
    actcodec.compiled(real, form, parts=1)
    loss(real, x).backward()
    real.zero_grad(set_to_none=True)
    kept = allocations(lambda: loss(real, x)).kept
    peak = allocations(lambda: loss(real, x).backward()).peak
    assert found.kept == pytest.approx(kept, rel=0.02)
    assert found.step == pytest.approx(peak, rel=0.01)
    assert found.kept < 0.5 * plain.kept


def test_a_compiled_model_that_returns_an_object_is_one_sentence():
    class Result:
        pass

    class Hidden(nn.Linear):
        def forward(self, x):
            return super().forward(x), Result()

    model, mode = Hidden(64, 64), FakeTensorMode(allow_non_fake_inputs=True)
    without_values(model, mode)
    one = Subject("own", model, lambda count: (mode.from_tensor(X),), lambda x: model(x)[0].sum(), "", mode, True)
    with pytest.raises(UserError, match="cannot predict Hidden, compiled: it returns a Result; let it return tensors"):
        predict(one, "compiled-int8")


def test_an_operation_that_needs_values_is_one_sentence():
    def loss(x):
        raise RuntimeError("this operation has no form for meta tensors")

    model = nn.Linear(64, 64)
    mode = FakeTensorMode(allow_non_fake_inputs=True)
    without_values(model, mode)
    one = Subject("own", model, lambda count: (mode.from_tensor(X),), loss, "", mode, True)
    for policy in ("none", "compiled"):
        with pytest.raises(UserError, match="the step does not run without values: this operation has no form for meta"):
            predict(one, policy)


class Wide(nn.Module):
    """A layer that keeps much for its few parameters."""

    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(64, 256), nn.Linear(256, 64)

    def forward(self, x):
        return x + self.down(nn.functional.gelu(self.up(x)))


def test_the_place_of_the_peak_names_a_module():
    class Narrow(nn.Module):
        def __init__(self):
            super().__init__()
            self.wide, self.act, self.narrow = nn.Linear(64, 4096), nn.GELU(), nn.Linear(4096, 1)

        def forward(self, x):
            return self.narrow(self.act(self.wide(x))).mean()

    found = predict(subject(Narrow(), torch.randn(4096, 64)))
    assert found.place == StoragePlace(BACKWARD, "narrow", "AddmmBackward0")


SCRIPT = """
import torch
model = torch.nn.Linear(100_000, 100_000, bias=False)

def batch(count):
    return (torch.randn(count, 100_000),)

def step(x):
    return model(x).mean()
"""


def test_a_script_runs_without_values(tmp_path):
    script = tmp_path / "large.py"
    script.write_text(SCRIPT)
    found = predict(of_script(script, dtype=torch.bfloat16), count=8)
    assert found.state == 2 * (100_000**2 + 8 * 100_000)
    assert torch.get_default_dtype() == torch.float32


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("model = 1", "does not define a model"),
        ("raise ValueError('no')", "does not run without values: ValueError: no"),
        ("import sys\nsys.exit(0)", r"own\.py ends the process .*line 2\): let it define model and step"),
        ("import torch\nx = torch.rand(3)\nprint(x[0].item() > 0)", "does not run without values"),
    ],
)
def test_a_script_that_is_none_is_refused(text, said, tmp_path):
    script = tmp_path / "own.py"
    script.write_text(text)
    with pytest.raises(UserError, match=said):
        of_script(script)


@pytest.mark.parametrize("policy", ["none", "compiled"])
@pytest.mark.parametrize(
    ("does", "said"),
    [
        ("model(x)", "the step returned no loss"),
        ("return 3.0", "the step returned no loss"),
        ("return model(x)", "the step returned no loss"),
        ("raise SystemExit", r"step\(\) of .*own\.py ends the process: let it return the loss"),
        ("return model(x).mean()\ndef batch(count): return torch.ones(1, 4)", r"batch\(count\) .* returns FakeTensor"),
    ],
)
def test_a_step_without_a_loss_is_one_sentence(policy, does, said, tmp_path):
    script = tmp_path / "own.py"
    script.write_text(f"import torch\nmodel = torch.nn.Linear(4, 4)\ndef step(x=torch.ones(1, 4)):\n    {does}\n")
    with pytest.raises(UserError, match=said):
        predict(of_script(script), policy)


@pytest.mark.parametrize("policy", ["none", "compiled", "compiled-int8"])
def test_a_batch_of_the_file_counts_as_one_that_is_given(policy, tmp_path):
    """Data that the step reads by itself, a part of them here, are there before it, as those of ``batch`` are."""
    layers = "import torch\nmodel = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.Tanh(), torch.nn.Linear(64, 64))\n"
    data = "x = torch.rand(256, 64)\n"
    texts = (
        "def step(): return model(x[:128]).square().mean()\n",
        "def step(x): return model(x).square().mean()\ndef batch(count): return (x[:128],)\n",
    )
    found = []
    for number, text in enumerate(texts):
        script = tmp_path / f"own{number}.py"
        script.write_text(layers + data + text)
        found.append(predict(of_script(script), policy))
    assert found[0] == found[1]
    assert found[0].state == 4 * (2 * 65 * 64 + 256 * 64)


def test_a_step_that_takes_what_it_is_not_given_is_one_sentence(tmp_path):
    script = tmp_path / "own.py"
    script.write_text("import torch\nmodel = torch.nn.Linear(4, 4)\ndef step(x): return model(x).mean()\n")
    with pytest.raises(UserError, match=r"step\(\) of .*own\.py does not take what it is given, 0 values \(missing a .*'x'\)"):
        predict(of_script(script))


def test_a_step_that_reads_values_and_a_batch_that_cannot_change_are_refused(tmp_path):
    script = tmp_path / "own.py"
    script.write_text(
        "import torch\nmodel = torch.nn.Linear(4, 4)\n"
        "def step():\n    y = model(torch.randn(4, 4)).mean()\n    return y if y.item() > 0 else -y\n"
    )
    own = of_script(script)
    with pytest.raises(UserError, match="the step reads values, and there are none"):
        predict(own)
    with pytest.raises(UserError, match=r"has one batch only: define batch\(count\)"):
        predict(own, count=2)
