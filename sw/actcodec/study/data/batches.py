"""Batches of real images and text that scikit-learn ships, in the form that models of other libraries take.

Images are coloured crops of two photographs, laid side by side and shuffled; text is English, the descriptions of data sets,
with a letter as token. Both are the same each time.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import torch
from torch import Tensor

#: Classes of a crop: its photograph, and the third of the height in which it lies.
CLASSES = 6
#: Letters.
VOCABULARY = 128
#: Classes of a text: the data set that it describes.
SUBJECTS = ("digits", "wine", "iris", "breast_cancer")
#: Classes of a pixel: brightness.
SHADES = 4
_THIRDS = 3


def images(number: int, count: int, side: int) -> tuple[Tensor, Tensor]:
    """Return crops and their classes: float32 (count, 3, side, side) of mean 0 and deviation 1 per channel, int64 (count,)."""
    crops, classes = _crops(side)
    places = torch.arange(number * count, (number + 1) * count) % len(crops)
    return crops[places], classes[places]


def shades(pictures: Tensor) -> Tensor:
    """Return the brightness of each pixel in quarters of the image's: int64 (N, H, W), 0 to 3, for images (N, 3, H, W)."""
    brightness = pictures.mean(1)
    steps = torch.linspace(0, 1, SHADES + 1)[1:-1]
    limits = brightness.flatten(1).quantile(steps, dim=1)
    return (brightness[None] > limits[..., None, None]).sum(0)


def texts(number: int, count: int, length: int) -> tuple[Tensor, Tensor]:
    """Return pieces of text and their subjects: int64 (count, length) below 128, int64 (count,)."""
    pieces, subjects = _pieces(length)
    places = torch.arange(number * count, (number + 1) * count) % len(pieces)
    return pieces[places], subjects[places]


@cache
def _crops(side: int) -> tuple[Tensor, Tensor]:
    from sklearn.datasets import load_sample_images

    crops, classes = [], []
    for number, photo in enumerate(load_sample_images().images):
        pixels = torch.from_numpy(photo.astype(np.float32)).permute(2, 0, 1)
        cut = pixels.unfold(1, side, side // 2).unfold(2, side, side // 2)
        rows, columns = cut.shape[1:3]
        crops.append(cut.permute(1, 2, 0, 3, 4).flatten(0, 1))
        thirds = torch.arange(rows) * _THIRDS // rows
        classes.append((number * _THIRDS + thirds).repeat_interleave(columns))
    together = torch.cat(crops)
    deviation, mean = torch.std_mean(together, (0, 2, 3), keepdim=True)
    order = _order(len(together))
    return ((together - mean) / deviation)[order], torch.cat(classes)[order]


@cache
def _pieces(length: int) -> tuple[Tensor, Tensor]:
    from sklearn import datasets

    pieces, subjects = [], []
    for subject, name in enumerate(SUBJECTS):
        text = getattr(datasets, f"load_{name}")().DESCR.encode("ascii", "replace")
        letters = torch.from_numpy(np.frombuffer(text, dtype=np.uint8).astype(np.int64))
        cut = letters.unfold(0, length, length // 2)
        pieces.append(cut)
        subjects.append(torch.full((len(cut),), subject))
    order = _order(sum(map(len, pieces)))
    return torch.cat(pieces)[order], torch.cat(subjects)[order]


def _order(count: int) -> Tensor:
    return torch.randperm(count, generator=torch.Generator().manual_seed(0))
