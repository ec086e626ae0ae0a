"""Check memory that is moved to a host."""

import torch
from actcodec.saved.allocations import allocations
from largest_batch import moved_to_host
from torch import nn


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
