"""Arguments of compiled models: what is not allowed gets one sentence, and the model runs as before."""

from __future__ import annotations

import copy
import pickle

import actcodec
import pytest
import torch
from cdu_tools.errors import UserError
from torch import nn

pytestmark = pytest.mark.usefixtures("graphs")


def make():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(64, 64), nn.GELU(), nn.Linear(64, 64))


class Scaled(nn.Module):
    """A product with an attribute of the model."""

    def __init__(self):
        super().__init__()
        self.scale = 1.0

    def forward(self, x):
        return self.scale * x


def step():
    pass


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"model": "abc"}, "a str is no model: give an nn.Module"),
        ({"model": None}, "a NoneType is no model: give an nn.Module"),
        ({"policy": 5}, "policy = 5 is not allowed: use the name of a format"),
        ({"policy": []}, r"policy = \[\] is not allowed"),
        ({"policy": [5]}, r"policy = \[5\] is not allowed"),
        ({"policy": "int3"}, "unknown format 'int3': did you mean int8, int6 or int5"),
        ({"policy": "windows2"}, "unknown format 'windows2'"),
        ({"policy": "bits"}, "unknown format 'bits'"),
        ({"policy": ["int8", "int4"]}, "2 formats are given without a budget"),
        ({"parts": "two"}, "parts = 'two' is not allowed: use a whole number from 1 up"),
        ({"parts": 1.5}, "parts = 1.5 is not allowed"),
        ({"parts": 0}, "parts = 0 is not allowed"),
        ({"recompute": 2}, "recompute = 2 is not allowed: use a share from 0 to 1"),
        ({"recompute": 0.5}, "is given without a budget"),
        ({"step": step}, "is given without a budget"),
        ({"budget": 0.9}, "without a step to measure"),
        ({"budget": 0.9, "step": 5}, "without a step to measure"),
        ({"budget": "64MB", "step": step}, "a budget of '64MB' bytes is not allowed: give a number of bytes"),
        ({"budget": float("nan"), "step": step}, "a budget of nan bytes is not allowed"),
        ({"budget": float("inf"), "step": step}, "a budget of inf bytes is not allowed"),
        ({"budget": -1, "step": step}, "a budget of -1 bytes is not allowed"),
        ({"budget": 0.9, "step": step, "recompute": -1}, "recompute = -1 is not allowed"),
        ({"budget": 0.9, "step": step, "model": nn.ReLU()}, "trains no parameter"),
        ({"budget": 0.9, "step": step}, "no compiled part of the model runs forward and backward"),
    ],
)
def test_what_is_not_allowed_is_said(arguments, said):
    model = arguments.pop("model", make())
    with pytest.raises(UserError, match=said) as raised:
        actcodec.compiled(model, arguments.pop("policy", None), **arguments)
    assert "\n" not in str(raised.value)
    assert not isinstance(model, nn.Module) or (model._compiled_call_impl is None and "forward" not in vars(model))


def test_a_refused_budget_leaves_the_model_as_it_was():
    model, x = make(), torch.randn(128, 64)
    model(x).square().sum().backward()
    exact = [parameter.grad.clone() for parameter in model.parameters()]
    for make_call in (lambda: None, lambda: actcodec.compiled(model, "int8")):
        call, before = make_call(), model._compiled_call_impl
        with pytest.raises(UserError, match="a budget of 2 bytes"):
            actcodec.compiled(model, budget=2, step=lambda: model(x).square().sum().backward())
        assert model._compiled_call_impl is before
        if call is not None:
            call.close()
        model.zero_grad()
        model(x).square().sum().backward()
        assert all(torch.equal(one.grad, other) for one, other in zip(model.parameters(), exact, strict=True))


@pytest.mark.parametrize("backward", [False, True])
def test_a_step_without_a_backward_is_refused(backward):
    model, x = make(), torch.randn(128, 64)

    def forward():
        with torch.set_grad_enabled(backward):
            model(x)

    with pytest.raises(UserError, match="no compiled part of the model runs forward and backward"):
        actcodec.compiled(model, budget=0.5, step=forward)


def test_a_share_is_one_of_the_plain_model_s_peak_though_the_model_is_compiled():
    model, x = make(), torch.randn(128, 64)

    def step():
        with torch.no_grad():
            model(x)
        model(x).square().sum().backward()

    first = actcodec.compiled(model, "int8", budget=1.0, step=step).rows
    assert first
    actcodec.compiled(model, "int4")
    assert [row.chosen for row in actcodec.compiled(model, "int8", budget=1.0, step=step).rows] == [row.chosen for row in first]


def test_a_budget_for_a_model_with_dropout():
    """The steps that measure what formats do run inductor's random operations."""
    torch.manual_seed(0)
    layers = [layer for _ in range(3) for layer in (nn.Linear(64, 64), nn.GELU(), nn.Dropout(0.3))]
    model, x = nn.Sequential(*layers), torch.randn(512, 64)
    found = actcodec.compiled(model, "int8", budget=0.6, step=lambda: model(x).square().sum().backward())
    coded = [row for row in found.rows if row.chosen.action == "int8"]
    assert {row.saved.module for row in coded} <= {name for name, _ in model.named_modules()}
    assert coded
    assert all(0 < row.chosen.loss < 1e-3 for row in coded)


def test_a_handle_closes_its_own_call_alone():
    model = make()
    first, second = actcodec.compiled(model, "int8"), actcodec.compiled(model, "int4")
    first.close()
    assert model._compiled_call_impl is not None
    second.close()
    assert model._compiled_call_impl is None


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))])
def test_a_copy_is_a_model_of_its_own_that_runs_as_it_was_written(copied):
    x = torch.ones(2, 4)
    model = Scaled()
    handle = actcodec.compiled(model, "int8")
    again = copied(model)
    assert not {"forward", "__getstate__"} & vars(again).keys()
    again.scale = 3.0
    assert torch.equal(again(x), 3 * x)
    assert torch.equal(model(x), x)
    handle.close()
    assert not {"forward", "__getstate__"} & vars(model).keys()
    assert torch.equal(again(x), 3 * x)


def test_a_hook_that_comes_later_runs():
    model, x = make(), torch.randn(128, 64)
    handle = actcodec.compiled(model, "int8")
    before = model(x).detach()
    hook = model[2].register_forward_hook(lambda module, inputs, result: 2 * result)
    assert torch.equal(model(x), 2 * before)
    hook.remove()
    assert torch.equal(model(x), before)
    handle.close()


def test_models_of_hooks_and_selections_are_checked():
    model = make()
    for arguments, said in (
        (("abc", "sfpr"), "a str is no model: give an nn.Module"),
        ((model, "sfpr", "exclude"), "exclude = None is not allowed: use names of modules"),
        ((model, "sfpr", "only"), "only = None is not allowed"),
    ):
        with pytest.raises(UserError, match=said):
            actcodec.compress_activations(*arguments[:2], **dict.fromkeys(arguments[2:]))


def test_a_model_without_shapes_is_one_sentence():
    model, x = nn.Sequential(nn.LazyLinear(8), nn.LazyBatchNorm1d()), torch.randn(16, 4)
    context, handles = actcodec.compress_activations(model, "sfpr"), []
    said = "0, an nn.LazyLinear, finds the shapes of its parameters in its first call: call the model once before"
    for does in (
        context.enable,
        lambda: handles.append(actcodec.compiled(model, "int8")) or model(x),
        lambda: actcodec.compiled(model, budget=0.9, step=step),
        lambda: actcodec.check(model, lambda: model(x).square().mean(), ["sfpr"]),
    ):
        with pytest.raises(UserError, match=said):
            does()
    for handle in reversed(handles):
        handle.close()
    model(x)
    with context:
        loss = model(x).square().mean()
    loss.backward()
    assert all(parameter.grad is not None for parameter in model.parameters())
