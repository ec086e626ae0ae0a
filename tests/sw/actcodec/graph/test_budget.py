"""The plan for a small network, from its floor to the peak with all values kept, without a compiler."""

import pytest
import torch
from actcodec.graph.budget import Budget, keeps_all
from actcodec.graph.compiled import FORMATS
from actcodec.graph.formats import format_of
from actcodec.graph.segments import compile_in_parts
from actcodec.graph.survey import Survey
from torch import nn
from torch.nn import functional as F


class Mixed(nn.Module):
    """Convolutions, normalisations and products: values of several sizes, that live at several times."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.maps = nn.Sequential(nn.Conv2d(3, 16, 3), nn.BatchNorm2d(16), nn.SiLU(), nn.Conv2d(16, 8, 3), nn.ReLU())
        self.blocks = nn.ModuleList(nn.Sequential(nn.LayerNorm(128), nn.Linear(128, 256), nn.GELU()) for _ in range(4))
        self.down = nn.ModuleList(nn.Linear(256, 128) for _ in range(4))

    def forward(self, x):
        x = self.maps(x).flatten(2)[..., :128]
        for block, down in zip(self.blocks, self.down, strict=True):
            x = x + down(block(x))
        return x


@pytest.fixture(scope="module")
def survey():
    torch.manual_seed(1)
    x, model, survey = torch.randn(16, 3, 20, 20), Mixed(), Survey([format_of(name) for name in FORMATS])
    torch._dynamo.reset()
    called = torch.compile(model, backend=lambda graph, given: compile_in_parts(graph, given, survey.compile_part, None))
    F.mse_loss(called(x), torch.zeros(16, 8, 128)).backward()
    return survey


@pytest.fixture(scope="module")
def plan(survey):
    return Budget(survey, FORMATS, 0.0)


def loss(rows):
    return sum(row.chosen.loss for row in rows)


def test_more_bytes_bring_no_lower_peak_and_no_greater_error(plan):
    least, most = (plan.peak(plan.choices(nbytes, 1.0)[0][0]) for nbytes in (0, 1 << 40))
    assert least < 0.75 * most
    found = []
    for place in range(41):
        budget = least + (most - least) * place // 40
        (choices, rows), *above = plan.choices(budget, 1.0)
        assert plan.peak(choices) <= budget
        assert all(plan.peak(other) > budget and loss(more) <= loss(rows) for other, more in above)
        found.append((plan.peak(choices), loss(rows)))
    peaks, losses = [peak for peak, _ in found], [error for _, error in found]
    assert peaks == sorted(peaks)
    assert losses == sorted(losses, reverse=True)
    assert keeps_all(rows)
    assert len(set(peaks)) > 10


def test_below_the_floor_the_choice_is_that_of_the_least_peak(plan):
    least, _ = plan.choices(0, 1.0)[0]
    floor = plan.peak(least)
    assert plan.choices(floor - 1, 1.0)[0][0] == least
    assert plan.peak(plan.choices(floor, 1.0)[0][0]) == floor


def test_a_peak_that_is_measured_higher_than_predicted_lowers_what_is_chosen(plan):
    most = plan.peak(plan.choices(1 << 40, 1.0)[0][0])
    choices, _ = plan.choices(most, 1.25)[0]
    assert 1.25 * plan.peak(choices) <= most


@pytest.mark.parametrize("share", [0.1, 1.0])
def test_what_may_be_computed_again_raises_no_floor(survey, plan, share):
    free = Budget(survey, FORMATS, share)
    assert free.peak(free.choices(0, 1.0)[0][0]) <= plan.peak(plan.choices(0, 1.0)[0][0])
