"""Settings for shared test machines: one thread, and no deadline for property tests; failures print how to repeat them."""

import pytest
import torch
from hypothesis import settings

settings.register_profile("shared", deadline=None, print_blob=True)
settings.load_profile("shared")


@pytest.fixture(autouse=True)
def repeatable():
    torch.set_num_threads(1)
    torch.manual_seed(0)


@pytest.fixture
def maps():
    """Smooth maps of several shapes, channels of very different size, no multiple of 8 among the sides of the second."""
    random = torch.Generator().manual_seed(5)
    found = []
    for shape in ((4, 3, 16, 16), (2, 2, 9, 13), (1, 4, 8, 24)):
        x = torch.randn(shape, generator=random)
        x = x + x.roll(1, 3) + x.roll(1, 2)
        found.append(x * torch.logspace(-2, 2, shape[1])[:, None, None])
    return found
