"""What `cdu check examples/check_me.py` looks at: a network, and a step that is the same whenever it is taken."""

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
