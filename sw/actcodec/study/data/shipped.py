"""Images that scikit-learn ships: no download needed."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch.nn import functional

from actcodec.study.data.dataset import Dataset, classification

_TEST_EVERY = 5
_CROP = 32
_CROP_STEP = 32


def digits() -> Dataset:
    """Handwritten digits, 1797 images of 8x8 and 17 grey levels, enlarged to 16x16; every fifth is a test image."""
    from sklearn.datasets import load_digits

    bunch = load_digits()
    small = torch.from_numpy(bunch.images.astype(np.float32))[:, None]
    large = functional.interpolate(small, scale_factor=2, mode="bilinear", align_corners=False)
    images = (large * (255 / 16)).round().clamp(0, 255).to(torch.uint8).permute(0, 2, 3, 1).numpy()
    test = np.arange(len(images)) % _TEST_EVERY == 0
    return classification(
        "digits",
        "scikit-learn's handwritten digits (8x8), enlarged to 16x16; every fifth image is a test image",
        (images[~test], bunch.target[~test]),
        (images[test], bunch.target[test]),
    )


def photos() -> Dataset:
    """Crops of 32x32 of the luminance of two photographs; the input was halved and enlarged again (bicubic)."""
    from sklearn.datasets import load_sample_images

    crops = []
    for photo in load_sample_images().images:
        luminance = torch.from_numpy(photo.astype(np.float32) / 255) @ torch.tensor([0.299, 0.587, 0.114])
        crops.append(luminance.unfold(0, _CROP, _CROP_STEP).unfold(1, _CROP, _CROP_STEP).reshape(-1, 1, _CROP, _CROP))
    sharp = torch.cat(crops).contiguous()
    small = functional.interpolate(sharp, scale_factor=0.5, mode="bicubic", align_corners=False, antialias=True)
    blurred = functional.interpolate(small, scale_factor=2, mode="bicubic", align_corners=False).clamp(0, 1)
    test = torch.arange(len(sharp)) % _TEST_EVERY == 0
    note = (
        "luminance of scikit-learn's two photographs, crops of 32x32 side by side, "
        "halved and enlarged again by bicubic interpolation; every fifth crop is a test image"
    )
    return Dataset("photos", note, 0, blurred[~test], sharp[~test], blurred[test], sharp[test])


LOADERS: dict[str, Callable[[], Dataset]] = {"digits": digits, "photos": photos}
