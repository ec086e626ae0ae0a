"""``actcodec.check``: its figures are the gradients, bytes and allocations of the step."""

import json
import subprocess
import sys
from pathlib import Path

import actcodec
import pytest
import torch
from actcodec.policies.policy import CodecSpec, Policy, Rule
from actcodec.saved.allocations import allocations
from actcodec.study import diagnose
from cdu_cli import main as entry
from cdu_tools.errors import UserError
from codecs_for_tests import ExactCodec
from torch import nn
from torch.nn import functional as F
from typer.testing import CliRunner

X, LABELS = torch.rand(8, 3, 16, 16, generator=torch.Generator().manual_seed(0)), torch.arange(8)
EXAMPLE = Path(__file__).parents[4] / "examples" / "check_me.py"


@pytest.fixture
def model():
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(3, 16, 3), nn.BatchNorm2d(16), nn.GELU(), nn.Dropout(0.3), nn.Flatten(), nn.Linear(16 * 196, 8)
    )


def loss_of(model):
    return F.cross_entropy(model(X), LABELS)


def flat(model, loss):
    return torch.cat([g.flatten() for g in torch.autograd.grad(loss, list(model.parameters()))])


def test_figures_are_those_of_the_step(model):
    torch.manual_seed(5)  # seed of the dropout's mask
    (found,) = actcodec.check(model, lambda: loss_of(model), ["sfpr"]).policies
    exact = flat(model, loss_of(model))
    torch.manual_seed(5)
    with actcodec.compress_activations(model, "sfpr") as stats:
        loss = loss_of(model)
    got = flat(model, loss)
    assert found.cosine == pytest.approx(F.cosine_similarity(exact.double(), got.double(), 0).item(), abs=1e-9)
    assert found.norm_ratio == pytest.approx((got.double().norm() / exact.double().norm()).item(), abs=1e-9)
    assert found.ratio == stats.ratio
    assert found.verdict == "good"
    assert found.worst_cosine <= found.cosine


def test_the_compiler_is_not_imported():
    """It takes seconds, and torch.profiler asks for it."""
    check = "import sys, torch, actcodec; from torch import nn; model = nn.Linear(8, 8).requires_grad_()"
    check += "; actcodec.check(model, lambda: model(torch.ones(4, 8)).sum(), ['sfpr']); print('torch._dynamo' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_peaks_are_the_allocators(model):
    found = actcodec.check(model, lambda: loss_of(model), ["sfpr"])

    def step():
        return flat(model, loss_of(model)).sum()

    step()
    assert found.peak_bytes == pytest.approx(allocations(step).peak, rel=0.1)
    assert found.policies[0].peak_bytes < found.peak_bytes


def test_nothing_is_changed(model):
    loss_of(model).backward()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    gradients = [parameter.grad.clone() for parameter in model.parameters()]
    random = torch.get_rng_state()
    actcodec.check(model, lambda: loss_of(model), ["sfpr", "actnn"])
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert all(torch.equal(p.grad, grad) for p, grad in zip(model.parameters(), gradients, strict=True))
    assert torch.equal(torch.get_rng_state(), random)


def test_noise_is_called_noise_and_not_recommended(model):
    few = CodecSpec("actnn", {"bits": 1})
    found = actcodec.check(model, lambda: loss_of(model), [few, CodecSpec("actnn", {"bits": 8})])
    assert [one.verdict for one in found.policies] == ["noise", "good"]
    assert found.recommended is found.policies[1]
    assert "recommended: actnn bits=8" in found.table()
    alone = actcodec.check(model, lambda: loss_of(model), [few])
    assert alone.recommended is None
    assert "recommended: none of these" in alone.table()


def test_an_exact_policy_is_exact(model):
    (found,) = actcodec.check(model, lambda: loss_of(model), [Policy((), default=ExactCodec())]).policies
    assert found.policy == "Policy"
    assert (found.cosine, found.norm_ratio, found.worst_cosine) == pytest.approx((1, 1, 1), abs=1e-6)


def test_the_worst_layer_is_named(model):
    """The convolution's input alone is compressed, and only its gradient follows by it."""
    policy = Policy((Rule(CodecSpec("actnn", {"bits": 1}), consumer=("conv",)),))
    (found,) = actcodec.check(model, lambda: loss_of(model), [policy]).policies
    assert found.worst_layer == "0"
    assert found.worst_cosine < 0.95


@pytest.mark.parametrize(
    ("step", "said"),
    [
        (lambda model: torch.zeros(()), "the step returned no loss that depends on a parameter"),
        (lambda model: model(X), "the step returned no loss"),
        (lambda model: None, "the step returned no loss"),
        (lambda model: loss_of(model).item(), "the step returned no loss"),
        (lambda model: loss_of(model) * 0, "the gradient has norm 0"),
        (lambda model: loss_of(model) * float("nan"), "the gradient has norm nan"),
    ],
)
def test_steps_that_cannot_be_checked(model, step, said):
    with pytest.raises(UserError, match=said):
        actcodec.check(model, lambda: step(model), ["sfpr"])


def test_a_step_that_runs_backward_itself_is_refused_and_leaves_no_gradient(model):
    def step():
        loss = loss_of(model)
        loss.backward()
        return loss

    for run in (actcodec.check, diagnose):
        with pytest.raises(UserError, match=r"the step calls backward\(\) itself: let it return the loss"):
            run(model, step)
    assert all(parameter.grad is None for parameter in model.parameters())


def test_what_is_no_model_no_step_and_no_policies_is_refused(model):
    def step():
        return loss_of(model)

    frozen = nn.Linear(4, 4).requires_grad_(False)
    for run in (actcodec.check, diagnose):
        with pytest.raises(UserError, match="no parameter of the model requires a gradient: call requires_grad_"):
            run(frozen, step)
        with pytest.raises(UserError, match=r"a NoneType is no model: give an nn\.Module"):
            run(None, step)
        with pytest.raises(UserError, match="the step is a NoneType: give a function without arguments"):
            run(model, None)
    for policies in (None, 5, "sfpr"):
        with pytest.raises(UserError, match="use a list of names, or of policies"):
            actcodec.check(model, step, policies)
    with pytest.raises(UserError, match="a int is no policy"):
        actcodec.check(model, step, [5])


def test_a_step_that_is_another_each_time_is_refused(model):
    batches = iter([(X, LABELS), (1 - X, LABELS.flip(0))] * 4)

    def step():
        x, labels = next(batches)
        return F.cross_entropy(model(x), labels)

    with pytest.raises(UserError, match="take the same batch each time"):
        actcodec.check(model, step, ["sfpr"])


def test_the_command_on_the_example(tmp_path):
    result = CliRunner().invoke(
        entry.app, ["check", str(EXAMPLE), "--codec", "sfpr,actnn-L2", "--json", str(tmp_path / "check.json")]
    )
    assert result.exit_code == 0, result.output
    found = json.loads((tmp_path / "check.json").read_text())
    assert [one["policy"] for one in found["policies"]] == ["sfpr", "actnn-L2"]
    assert f"recommended: {found['recommended'] or 'none of these'}" in result.output


def test_the_command_names_a_step_that_runs_backward(tmp_path):
    script = tmp_path / "own.py"
    script.write_text(
        "import torch\nmodel = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Tanh())\n"
        "def step():\n    loss = model(torch.ones(2, 4)).square().sum()\n    loss.backward()\n    return loss\n"
    )
    result = CliRunner().invoke(entry.app, ["check", str(script), "--codec", "sfpr"])
    assert isinstance(result.exception, UserError)
    assert str(result.exception) == "the step calls backward() itself: let it return the loss, and leave backward() out"
