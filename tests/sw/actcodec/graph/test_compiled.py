"""The door: budgets are kept at the peak that is measured, and what a user gives wrong is said."""

import actcodec
import pytest
import torch
from actcodec.graph import compiled
from actcodec.graph.compiled import Compiled
from actcodec.graph.live_bytes import peak_of_step
from actcodec.study.likeness import cosine
from cdu_tools.errors import UserError
from torch import nn
from torch.nn import functional as F

X = torch.randn(64, 32, 128, generator=torch.Generator().manual_seed(0))


class Net(nn.Module):
    """Normalisations and products whose saved values differ in what they do to the gradient."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.norm = nn.BatchNorm1d(32)
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.LayerNorm(128), nn.Linear(128, 256), nn.GELU(), nn.Linear(256, 128)) for _ in range(2)
        )

    def forward(self, x):
        x = self.norm(x)
        for block in self.blocks:
            x = x + block(x)
        return x


def step_of(model):
    return lambda: F.mse_loss(model(X), X.flip(0)).backward()


def gradients(model):
    for parameter in model.parameters():
        parameter.grad = torch.zeros_like(parameter)
    step_of(model)()
    return [parameter.grad.clone() for parameter in model.parameters()]


def measured(model):
    gradients(model)
    return peak_of_step(step_of(model), torch.device("cpu"))


@pytest.fixture(scope="module")
def exact():
    model = Net()
    return gradients(model), measured(model)


def test_a_format_for_all(exact):
    model = Net()
    handle = actcodec.compiled(model, "int8")
    assert cosine(exact[0], gradients(model)) > 0.9999
    assert measured(model) < 0.75 * exact[1]
    assert "int8" in handle.report()
    assert list(model.state_dict()) == list(Net().state_dict())
    handle.close()
    assert measured(model) == exact[1]


def test_budgets_are_kept_by_two_compilations_and_more_bytes_are_no_worse(exact, monkeypatch):
    found, tried = [], []
    monkeypatch.setattr(compiled, "Compiled", lambda *given: tried.append(given) or Compiled(*given))
    for share in (0.61, 0.7):
        model = Net()
        handle = actcodec.compiled(model, budget=share, step=step_of(model))
        peak = measured(model)
        assert handle.peak == peak
        assert peak <= 1.02 * share * exact[1]
        assert len(handle.report().splitlines()) == len(handle.rows) + 1
        found.append((peak, 1 - cosine(exact[0], gradients(model))))
    assert len(tried) <= 2 * len(found)
    assert found[0][0] < found[1][0]
    assert found[0][1] >= found[1][1]


def test_a_budget_below_the_floor_is_refused_with_the_floor(exact):
    model = Net()
    with pytest.raises(UserError, match=r"a budget of 1000 bytes \(0.0 MiB\) cannot be kept: give \d+ bytes \(\d+"):
        actcodec.compiled(model, budget=1000, step=step_of(model))


def test_what_the_measuring_steps_change_is_put_back():
    model = Net()
    torch.manual_seed(7)
    before = torch.get_rng_state()
    actcodec.compiled(model, budget=0.8, step=step_of(model))
    assert model.norm.num_batches_tracked == 0
    assert not model.norm.running_mean.any()
    assert all(parameter.grad is None for parameter in model.parameters())
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"policy": "int3"}, "format 'int3' is not known"),
        ({"policy": ("int8", "int4")}, "2 formats are given without a budget: give one format, or budget= and step="),
        ({"budget": 0.5}, "a budget is given without a step to measure"),
        ({"budget": -1, "step": lambda: None}, "a budget of -1 bytes is not positive"),
    ],
)
def test_wrong_options(options, said):
    with pytest.raises(UserError, match=said):
        actcodec.compiled(Net(), **options)
