"""The accuracy procedure of IEEE Std 1180-1990 for 8x8 inverse DCTs (ITU-T H.261, Annex A)."""

from __future__ import annotations

from dataclasses import dataclass
from math import cos, pi, sqrt

import torch
from torch import Tensor

#: Ranges (-L..H) of the random samples; each is run with both signs.
RANGES = ((256, 255), (5, 5), (300, 300))


@dataclass(frozen=True)
class Accuracy:
    """Errors over the blocks of one run."""

    peak: int
    pixel_mean_square: float  #: greatest of the 64 pixels
    mean_square: float
    pixel_mean: float  #: greatest of the 64 pixels
    mean: float

    def passes(self) -> bool:
        """Whether all limits of the standard are kept."""
        means = self.pixel_mean <= 0.015 and self.mean <= 0.0015
        return self.peak <= 1 and self.pixel_mean_square <= 0.06 and self.mean_square <= 0.02 and means


def samples(low: int, high: int, blocks: int, sign: int = 1) -> Tensor:
    """Random samples -low..high times ``sign``, int64 (blocks, 8, 8), of the generator that the standard prescribes."""
    state, values = 1, []
    for _ in range(blocks * 64):
        state = (state * 1103515245 + 12345) & 0xFFFFFFFF
        values.append(int((state & 0x7FFFFFFE) / 0x7FFFFFFF * (low + high + 1)) - low)
    return sign * torch.tensor(values).reshape(blocks, 8, 8)


def reference_forward(values: Tensor) -> Tensor:
    """Coefficients of a double-precision DCT, rounded and limited to 12 bits: int64 (B, 8, 8)."""
    basis = _basis()
    return _rounded(basis @ values.double() @ basis.T).clamp(-2048, 2047)


def reference_inverse(coefficients: Tensor) -> Tensor:
    """Samples of a double-precision inverse DCT, rounded and limited to 9 bits: int64 (B, 8, 8)."""
    basis = _basis()
    return _rounded(basis.T @ coefficients.double() @ basis).clamp(-256, 255)


def accuracy(reference: Tensor, tested: Tensor) -> Accuracy:
    """Errors of samples (B, 8, 8) against the reference."""
    error = (tested.long() - reference).double()
    square, mean = (error**2).mean(0), error.mean(0)
    return Accuracy(
        int(error.abs().max()), float(square.max()), float(square.mean()), float(mean.abs().max()), abs(float(mean.mean()))
    )


def _basis() -> Tensor:
    rows = [[sqrt((2 if k else 1) / 8) * cos((2 * n + 1) * k * pi / 16) for n in range(8)] for k in range(8)]
    return torch.tensor(rows, dtype=torch.float64)


def _rounded(values: Tensor) -> Tensor:
    """Nearest integers, halves upwards."""
    return (values + 0.5).floor().long()
