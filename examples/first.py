"""One training step with compressed activations, with what was saved, and activations in a file to try `cdu compress` on.

Nothing is trained to an end here: examples/train_resnet.py does that, and compares losses.
Takes a few seconds.   python examples/first.py
"""

import actcodec
import numpy
import torch
from torch import nn

model = nn.Sequential(nn.Conv2d(3, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.Flatten(), nn.Linear(32 * 32 * 32, 10))
images, labels = torch.rand(16, 3, 32, 32), torch.randint(10, (16,))
with actcodec.compress_activations(model, "jpeg-act") as stats:
    loss = nn.functional.cross_entropy(model(images), labels)
loss.backward()
print(stats)
numpy.save("activations.npy", model[:3](images).detach())
