"""The largest batch within a budget, and memory that is moved to a host."""

import pytest
import torch
from actcodec.saved.allocations import allocations
from actcodec.study.largest import largest
from cdu_tools.errors import UserError
from largest_batch import moved_to_host
from torch import nn


@pytest.mark.parametrize("first", [1, 7, 64])
@pytest.mark.parametrize("budget", [50, 99, 100, 1003, 25_000])
@pytest.mark.parametrize(
    "peak",
    [lambda batch: 100 * batch, lambda batch: 1000 + 3 * batch, lambda batch: batch**2 + batch, lambda batch: 900 + batch // 4],
)
def test_largest_fits_and_the_next_does_not(peak, budget, first):
    found = largest(peak, budget, first)
    fitting = [batch for batch in range(1, 100_000) if peak(batch) <= budget]
    assert found == max(fitting, default=0)


def test_no_batch_is_measured_twice_and_few_are():
    seen = []
    assert largest(lambda batch: seen.append(batch) or 1000 + 7 * batch, 8000, 64) == 1000
    assert len(seen) == len(set(seen)) == 4


def test_peaks_that_do_not_grow_are_an_error():
    with pytest.raises(UserError, match="does not grow with the batch"):
        largest(lambda batch: 10, 100, 1)


def test_what_is_moved_is_no_memory_of_the_device_and_the_gradient_is_the_same():
    model, x = nn.Sequential(nn.Linear(64, 64), nn.GELU(), nn.Linear(64, 64)), torch.randn(1024, 64)

    def forward(moved):
        if not moved:
            return model(x).square().mean()
        with moved_to_host():
            return model(x).square().mean()

    kept = {moved: allocations(lambda moved=moved: forward(moved)).kept for moved in (False, True)}
    assert kept[True] < 0.1 * kept[False]
    exact, got = (torch.autograd.grad(forward(moved), list(model.parameters())) for moved in (False, True))
    assert all(map(torch.equal, exact, got))
