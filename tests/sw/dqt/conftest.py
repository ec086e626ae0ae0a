import sys
from pathlib import Path

import pytest
import torch

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(autouse=True)
def _one_thread():
    torch.set_num_threads(1)


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
