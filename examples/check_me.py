"""What `cdu check` looks at: a network, called `model`, and a `step()` that is the same whenever it is taken.

The command says which policies the gradient of the step bears, what each keeps of its bytes and of its peak, and which to
take. Put a model and a batch of your own in the place of these.   cdu check examples/check_me.py
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
