"""Two equal trainings, through a backend and on the golden model, compared to the last bit."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from actcodec.backends.backend import Backend
from actcodec.backends.torch_backend import TorchBackend
from actcodec.study.models import ResNet
from actcodec.training import Statistics, compress_activations
from cdu_spec.config import CduConfig
from cdu_spec.mx import MX_FORMATS
from torch import Tensor, nn
from torch.nn import functional as F

_BATCH = 8
#: The digits have 8 x 8 pixels; enlarged, both stages of the network give maps that jpeg-act takes.
_PIXELS = 16
_LEARNING_RATE = 0.05


class Training:
    """One network, its optimiser and its data; equal seeds give equal trainings."""

    def __init__(self, seed: int, policy: str, backend: Backend, options: dict[str, Any]) -> None:
        torch.manual_seed(seed)
        self.model = ResNet(channels=1, classes=10, width=8, depth=1, stages=2)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=_LEARNING_RATE, momentum=0.9)
        self.policy, self.options = policy, {"backend": backend, **options}
        self._batches = batches(seed)

    def step(self) -> tuple[float, Statistics]:
        """Do one training step and return its loss and the statistics of tensors saved for the backward pass."""
        images, labels = next(self._batches)
        self.optimizer.zero_grad()
        with compress_activations(self.model, self.policy, **self.options) as statistics:
            loss = F.cross_entropy(self.model(images), labels)
        loss.backward()
        self.optimizer.step()
        return loss.item(), statistics

    def state(self) -> list[Tensor]:
        """Return every parameter and buffer."""
        model: nn.Module = self.model
        return [value.detach().clone() for value in model.state_dict().values()]


def batches(seed: int) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield batches of scikit-learn's handwritten digits: images (B, 1, 16, 16) in 0..1 and labels (B,), without end."""
    from sklearn.datasets import load_digits

    digits = load_digits()
    images = torch.tensor(digits.images, dtype=torch.float32)[:, None] / 16
    images = F.interpolate(images, size=_PIXELS, mode="bilinear", align_corners=False)
    labels = torch.tensor(digits.target)
    order = torch.Generator().manual_seed(seed)
    while True:
        for picks in torch.split(torch.randperm(len(images), generator=order), _BATCH):
            yield images[picks], labels[picks]


def policy_options(config: CduConfig, policy: str) -> dict[str, Any]:
    """Return options of a policy for which a unit's results equal the golden model's."""
    if policy in MX_FORMATS:
        return {}
    options: dict[str, Any] = {"scale_bits": config.scale_bits}
    if policy in ("jpeg_act", "jpeg_gmc"):
        options |= {"const_bits": config.const_bits, "pass1_bits": config.pass1_bits, "rounding": config.rounding}
    return options


def same_trainings(
    seed: int, policy: str, options: dict[str, Any], backend: Backend, steps: int, tell: Callable[[int, float], None]
) -> tuple[list[float], float]:
    """Train through a backend and on the golden model; return the losses and the ratio of the saved tensors.

    Raises AssertionError if losses, weights or bytes differ. ``tell`` is called with number and loss of every step.
    """
    mine, theirs = (Training(seed, policy, through, options) for through in (backend, TorchBackend()))
    kept = original = 0
    losses = []
    for step in range(steps):
        loss, statistics = mine.step()
        expected, golden_statistics = theirs.step()
        assert loss == expected, f"step {step}: loss {loss!r}, on the golden model {expected!r}"
        for one, other in zip(mine.state(), theirs.state(), strict=True):
            assert torch.equal(one, other), f"step {step}: the networks differ after the step"
        assert statistics.bytes_compressed == golden_statistics.bytes_compressed
        kept += statistics.bytes_compressed
        original += statistics.bytes_original
        losses.append(loss)
        tell(step, loss)
    assert kept, "nothing was compressed"
    return losses, round(original / kept, 3)
