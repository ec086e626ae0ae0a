"""Split activation maps into low and high frequencies by the DCT of whole maps (DIVISION, equations 4 and 5).

DIVISION argues that training needs the low-frequency part of an activation more exactly than the rest. This is the tool of that
analysis, not the codec: the codec takes means of blocks for the low part, which need no transform.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from cdu_tools.errors import UserError
from cdu_tools.numbers import is_whole
from torch import Tensor

#: Default part of each axis that counts as low frequencies.
DEFAULT_CORNER = 0.25
_MAP_AXES = 2


@dataclass(frozen=True)
class Lambdas:
    """Norms of the two parts of a tensor; the sum of their squares is the square of the tensor's norm (Parseval)."""

    low: float  #: lambda_L = ||DCT(H) . M||
    high: float  #: lambda_H = ||DCT(H) . (1 - M)||

    @property
    def share(self) -> float:
        """Part of the energy that is in low frequencies, 0 to 1; 0 for a tensor of zeros."""
        energy = self.low**2 + self.high**2
        return self.low**2 / energy if energy else 0.0


def dct_matrix(size: int, device: torch.device | str = "cpu") -> Tensor:
    """Return the orthonormal DCT-II of ``size`` points, float64 (size, size) [frequency][position]."""
    place = torch.arange(size, dtype=torch.float64, device=device)
    matrix = torch.cos(math.pi / size * (place + 0.5) * place[:, None]) * math.sqrt(2 / size)
    matrix[0] /= math.sqrt(2)
    return matrix


def dct_maps(x: Tensor) -> Tensor:
    """Compute the orthonormal two-dimensional DCT-II of each map, float64 (..., H, W) from floats (..., H, W)."""
    rows, columns = _matrices(x)
    return rows @ x.detach().to(torch.float64) @ columns.T


def idct_maps(coefficients: Tensor) -> Tensor:
    """Invert :func:`dct_maps`."""
    rows, columns = _matrices(coefficients)
    return rows.T @ coefficients.to(torch.float64) @ columns


def low_mask(height: int, width: int, corner: float | int = DEFAULT_CORNER, device: torch.device | str = "cpu") -> Tensor:
    """Return M of the paper, boolean (H, W): true in the corner of the lowest frequencies.

    Parameters
    ----------
    height, width
        Size of a map.
    corner
        Part of each axis, a float above 0 up to 1, rounded to whole frequencies and at least one; or a number of
        frequencies, an integer from 1 (paper: W), limited to the length of shorter axes.
    device
        Device of the result.

    Raises UserError for other corners.
    """
    whole = is_whole(corner)
    if isinstance(corner, bool) or not (corner >= 1 if whole else 0 < corner <= 1):
        raise UserError(f"corner = {corner!r} is not allowed: use a part of each axis up to 1.0, or 1 or more frequencies")
    across, down = (min(int(corner), size) if whole else max(round(corner * size), 1) for size in (width, height))
    mask = torch.zeros(height, width, dtype=torch.bool, device=device)
    mask[:down, :across] = True
    return mask


def split(x: Tensor, corner: float | int = DEFAULT_CORNER) -> tuple[Tensor, Tensor]:
    """Return the low-frequency part of each map and the rest, which add up to ``x``; float64 (..., H, W)."""
    maps = x.detach().to(torch.float64)
    low = idct_maps(dct_maps(maps) * low_mask(*_extents(x), corner, x.device))
    return low, maps - low


def lambdas(x: Tensor, corner: float | int = DEFAULT_CORNER) -> Lambdas:
    """Return lambda_L and lambda_H of a tensor of maps, floats (..., H, W)."""
    coefficients = dct_maps(x)
    mask = low_mask(*_extents(x), corner, x.device)
    low, high = (torch.linalg.vector_norm(coefficients * part) for part in (mask, ~mask))
    return Lambdas(float(low), float(high))


def _extents(x: Tensor) -> tuple[int, int]:
    return (x.shape[-2], x.shape[-1])


def _matrices(x: Tensor) -> tuple[Tensor, Tensor]:
    """Return the transforms of columns and of rows; UserError for a tensor without maps."""
    if x.ndim < _MAP_AXES or x.numel() == 0 or not x.is_floating_point():
        kind = str(x.dtype).removeprefix("torch.")
        raise UserError(f"a {kind} tensor of shape {tuple(x.shape)} has no maps to transform: use floats (..., H, W)")
    height, width = _extents(x)
    return dct_matrix(height, x.device), dct_matrix(width, x.device)
