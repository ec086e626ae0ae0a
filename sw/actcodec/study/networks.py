"""The reference networks by name: construction for a data set, and a training that takes about a minute on a CPU."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from cdu_tools.errors import UserError
from torch import nn

from actcodec.study.data import Dataset
from actcodec.study.models import ResNet, Vdsr, Vgg, VisionTransformer, WideResNet
from actcodec.study.models.vit import PATCHES

_MOMENTUM, _WEIGHT_DECAY, _ADAMW_WEIGHT_DECAY = 0.9, 5e-4, 0.05


@dataclass(frozen=True)
class Network:
    """A reference network."""

    build: Callable[[Dataset, int, int], nn.Module]  #: from data set, width and depth
    classifies: bool  #: False for super-resolution
    dataset: str  #: data set used when none is named
    width: int
    depth: int
    epochs: int
    learning_rate: float
    adamw: bool = False  #: AdamW in place of SGD with momentum
    gradient_norm: float | None = None  #: limit to which gradients are clipped
    least_depth: int = 1

    def optimizer(self, model: nn.Module, learning_rate: float) -> torch.optim.Optimizer:
        """Return SGD with momentum 0.9 and weight decay 5e-4, or AdamW with weight decay 0.05."""
        if self.adamw:
            return torch.optim.AdamW(model.parameters(), learning_rate, weight_decay=_ADAMW_WEIGHT_DECAY)
        return torch.optim.SGD(model.parameters(), learning_rate, momentum=_MOMENTUM, weight_decay=_WEIGHT_DECAY)

    @property
    def optimizer_text(self) -> str:
        """Describe the optimizer in words."""
        if self.adamw:
            return f"AdamW with weight decay {_ADAMW_WEIGHT_DECAY:g}"
        return f"SGD with momentum {_MOMENTUM:g}, weight decay {_WEIGHT_DECAY:g}"


def _channels(dataset: Dataset) -> int:
    return dataset.train_inputs.shape[1]


def _vit(dataset: Dataset, width: int, depth: int) -> nn.Module:
    side = dataset.train_inputs.shape[2]
    if side % PATCHES or dataset.train_inputs.shape[3] != side:
        raise UserError(f"model vit takes square images of a multiple of {PATCHES} pixels, {dataset.name} has others")
    return VisionTransformer(_channels(dataset), dataset.classes, side, width, depth)


NETWORKS: Mapping[str, Network] = {
    "resnet": Network(lambda d, w, n: ResNet(_channels(d), d.classes, w, n), True, "digits", 8, 1, 6, 0.1),
    "vgg": Network(lambda d, w, n: Vgg(_channels(d), d.classes, w, n), True, "digits", 8, 1, 6, 0.1),
    "wide-resnet": Network(lambda d, w, n: WideResNet(_channels(d), d.classes, w, n), True, "digits", 16, 1, 6, 0.1),
    "vit": Network(_vit, True, "digits", 32, 2, 20, 4e-3, True, gradient_norm=1.0),
    "vdsr": Network(
        lambda d, w, n: Vdsr(_channels(d), w, n), False, "photos", 16, 5, 20, 1e-3, True, gradient_norm=1.0, least_depth=2
    ),
}
