"""One form for all image sets."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch
from cdu_tools.errors import UserError
from torch import Tensor


@dataclass(frozen=True)
class Dataset:
    """Training and test images in memory.

    Inputs are float32 (N, C, H, W), contiguous. Targets are class numbers, int64 (N,), for classification (``classes`` > 0), or
    images, float32 (N, C, H, W) in 0..1, for super-resolution (``classes`` = 0).
    """

    name: str
    note: str  #: preparation of the images, for reports
    classes: int
    train_inputs: Tensor
    train_targets: Tensor
    test_inputs: Tensor
    test_targets: Tensor

    def to(self, device: torch.device) -> Dataset:
        """Return the data set on a device."""
        parts = (self.train_inputs, self.train_targets, self.test_inputs, self.test_targets)
        return Dataset(self.name, self.note, self.classes, *(part.to(device) for part in parts))

    def first(self, limit: int) -> Dataset:
        """Return the data set with its first ``limit`` training images."""
        return replace(self, train_inputs=self.train_inputs[:limit], train_targets=self.train_targets[:limit])


def classification(
    name: str,
    note: str,
    train: tuple[np.ndarray, np.ndarray],
    test: tuple[np.ndarray, np.ndarray],
    classes: int = 10,
) -> Dataset:
    """Return a classification set of uint8 images (N, H, W, C) and labels (N,).

    Images are scaled to mean 0 and standard deviation 1 per channel of the training images. Raises UserError when shapes,
    numbers or labels do not go together.
    """
    for part, (images, labels) in (("training", train), ("test", test)):
        if images.ndim != 4 or images.dtype != np.uint8 or labels.shape != images.shape[:1] or not len(images):
            raise UserError(
                f"{name}: {part} images {images.dtype} {images.shape} and labels {labels.shape} do not fit: "
                "use uint8 images (N, H, W, C) and N labels"
            )
        if labels.dtype.kind not in "iu" or labels.min() < 0 or labels.max() >= classes:
            raise UserError(f"{name}: a {part} label is not a whole number from 0 to {classes - 1}")
    if train[0].shape[1:] != test[0].shape[1:]:
        raise UserError(f"{name}: training images {train[0].shape[1:]} and test images {test[0].shape[1:]} differ in size")
    pixels = train[0].astype(np.float32)
    mean, deviation = pixels.mean(axis=(0, 1, 2)), pixels.std(axis=(0, 1, 2)) + 1e-6

    def inputs(images: np.ndarray) -> Tensor:
        scaled = (images.astype(np.float32) - mean) / deviation
        # A copy of its own has the usual strides also with one channel, where torch would take others for channels last.
        return torch.from_numpy(np.array(scaled.transpose(0, 3, 1, 2), np.float32, order="C"))

    def targets(labels: np.ndarray) -> Tensor:
        return torch.from_numpy(labels.astype(np.int64))

    return Dataset(name, note, classes, inputs(train[0]), targets(train[1]), inputs(test[0]), targets(test[1]))
