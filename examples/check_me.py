"""Example for `cdu check`: a network, called `model`, and a `step()` that gives the same loss each time it is called.

The command tells which policies keep a good gradient in this step, how many bytes and how much peak memory each takes, and
which to use. Replace the model and the batch by your own.   cdu check examples/check_me.py
"""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

torch.manual_seed(0)
model = nn.Sequential(
    *(nn.Conv2d(3, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU()),
    *(nn.Conv2d(32, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2)),
    *(nn.Flatten(), nn.Linear(32 * 16 * 16, 10)),
)
images, labels = torch.rand(16, 3, 32, 32), torch.randint(10, (16,))


def step() -> Tensor:
    """The loss of one batch."""
    return F.cross_entropy(model(images), labels)
