"""A model that does not compile runs by the policy of hooks that is nearest, after one warning."""

from __future__ import annotations

import warnings

import actcodec
import pytest
import torch
from actcodec.graph import compiled as door
from actcodec.graph.fallback import NotCompiledWarning, hooks_policy
from actcodec.graph.formats import FORMATS
from cdu_tools.errors import UserError
from torch import Tensor, nn

pytestmark = pytest.mark.usefixtures("graphs")


class Network(nn.Module):
    """A network in two graphs, with a buffer and random numbers in the first."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Sequential(nn.Linear(128, 128), nn.BatchNorm1d(128), nn.Dropout(0.2), nn.GELU())
        self.second = nn.Sequential(nn.Linear(128, 128), nn.GELU(), nn.Linear(128, 8))

    def forward(self, x: Tensor) -> Tensor:
        """Return what the second half makes of the first half's results."""
        h = self.first(x)
        torch._dynamo.graph_break()
        return self.second(h)


def network() -> Network:
    torch._dynamo.reset()
    torch.manual_seed(0)
    return Network()


def step(model: nn.Module) -> tuple[Tensor, dict[str, Tensor], dict[str, Tensor]]:
    """Return loss, gradients and buffers of two steps."""
    torch.manual_seed(1)
    model.zero_grad()
    for _ in range(2):
        loss = model(torch.randn(64, 128)).square().mean()
        loss.backward()
    gradients = {name: p.grad.clone() for name, p in model.named_parameters()}
    return loss.detach(), gradients, {name: buffer.clone() for name, buffer in model.named_buffers()}


@pytest.fixture
def breaks(monkeypatch):
    """A function that lets a compiler fail from its n-th graph on."""

    def broken(number: int, error: Exception) -> None:
        real, calls = door.inductor, []

        def inductor(*args):
            calls.append(args)
            if len(calls) >= number:
                raise error
            return real(*args)

        monkeypatch.setattr(door, "inductor", inductor)

    return broken


def same(a, b) -> bool:
    return a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)


@pytest.mark.parametrize("graph", [1, 2])
@pytest.mark.parametrize(("policy", "hooks"), [("int4", "int8-rows"), ("sfpr", "sfpr")])
def test_a_model_whose_graphs_fail_runs_by_hooks_from_its_first_step_on(breaks, graph, policy, hooks):
    """Whichever graph fails: buffers and random numbers are as if nothing had been tried."""
    model = network()
    with actcodec.compress_activations(model, hooks):
        loss, gradients, buffers = step(model)
    model = network()
    actcodec.compiled(model, policy=policy)
    breaks(graph, RuntimeError("no compiler here\nand more lines"))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = step(model)
    told = [str(one.message) for one in caught if one.category is NotCompiledWarning]
    assert len(told) == 1
    assert told[0] == (
        f"the model does not compile (RuntimeError: no compiler here) and runs as it was written, with the policy {hooks!r} of "
        "compress_activations"
    )
    assert not [str(one.message) for one in caught if "torch.compile compiled" in str(one.message)]
    assert torch.equal(found[0], loss)
    assert same(found[1], gradients)
    assert same(found[2], buffers)


def test_what_dynamo_itself_refuses_runs_by_hooks(monkeypatch):
    def refused(*_, **__):
        raise torch._dynamo.exc.InternalTorchDynamoError("not to be traced")

    model = network()
    actcodec.compiled(model)
    monkeypatch.setattr("torch._dynamo.symbolic_convert.InstructionTranslator.run", refused)
    with pytest.warns(NotCompiledWarning, match="not to be traced"):
        step(model)
    assert all(p.grad is not None for p in model.parameters())


def test_evaluation_that_does_not_compile_runs_as_it_was_written(breaks):
    model = network()
    actcodec.compiled(model)
    with torch.no_grad():
        model(torch.randn(64, 128))
    model.eval()
    breaks(1, RuntimeError("no compiler here"))
    x = torch.randn(64, 128)
    with pytest.warns(NotCompiledWarning):
        found = model(x)
    assert torch.equal(found, model._call_impl(x))


def test_errors_of_the_model_and_of_the_user_are_raised(breaks):
    model = network()
    actcodec.compiled(model)
    with warnings.catch_warnings():
        warnings.simplefilter("error", NotCompiledWarning)
        with pytest.raises(RuntimeError, match="shape"):
            model(torch.randn(64, 3))
        model(torch.randn(64, 128))
    model = network()
    actcodec.compiled(model)
    breaks(1, UserError("mine"))
    with pytest.raises(UserError, match=r"^mine$"):
        model(torch.randn(64, 128))


def test_a_budget_is_refused_when_the_model_does_not_compile(monkeypatch):
    def broken(*_, **__):
        raise RuntimeError("no compiler here")

    model = network()
    monkeypatch.setattr("actcodec.graph.survey.recorded_part", broken)
    sentence = r"^a budget needs a model that compiles \(RuntimeError: no compiler here\): give a policy alone$"
    with pytest.raises(UserError, match=sentence):
        actcodec.compiled(model, budget=0.5, step=lambda: step(model))


def test_a_closed_model_runs_as_it_was_written(breaks):
    model = network()
    handle = actcodec.compiled(model)
    breaks(1, RuntimeError("no compiler here"))
    handle.close()
    with warnings.catch_warnings():
        warnings.simplefilter("error", NotCompiledWarning)
        step(model)


@pytest.mark.parametrize("name", [name for name in FORMATS if name != "bits" and not name.startswith("windows")])
def test_each_format_has_a_policy_of_hooks(name):
    assert actcodec.compress_activations(nn.Linear(2, 2), hooks_policy(name)).policy is not None
    assert hooks_policy(name) == ("int8-rows" if name.startswith("int") else name)
