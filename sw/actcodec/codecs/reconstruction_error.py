"""Errors of a reconstruction: largest error, RMS error and PSNR."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import inf, log10, sqrt

import torch
from torch import Tensor

#: Values that are compared at a time, so that the double precision needs little memory.
_PIECE = 1 << 20


@dataclass(frozen=True)
class ReconstructionError:
    """The error of one reconstruction, computed in float64."""

    largest: float  #: max |y - x|
    rms: float  #: square root of the mean of (y - x)**2
    value_range: float  #: max(x) - min(x), without NaN and infinity

    @property
    def psnr(self) -> float:
        """Return the peak signal-to-noise ratio in dB, 20 log10(value_range / rms); infinite without an error."""
        if self.rms == 0:
            return inf
        return 20 * log10(self.value_range / self.rms) if self.value_range > 0 and self.rms < inf else -inf


def reconstruction_error(x: Tensor, y: Tensor, release: Callable[[], None] = lambda: None) -> ReconstructionError:
    """Compare a tensor with its reconstruction.

    Parameters
    ----------
    x, y
        Real tensors of one shape, of any number formats; at least one value. A NaN that comes back as NaN, and an infinity
        that comes back as itself, count as no error.
    release
        Called after each piece that is compared, so that tensors in mapped files do not stay in memory.
    """
    largest, squares = 0.0, 0.0
    least, greatest = inf, -inf
    pieces = (torch.split(tensor.detach().reshape(-1), _PIECE) for tensor in (x, y))
    for one, other in zip(*pieces, strict=True):
        (a, a_low), (b, b_low) = _halves(one), _halves(other)
        same = ((a == b) & (a_low == b_low)) | (a.isnan() & b.isnan())
        error = torch.where(same, 0.0, (b - a + (b_low - a_low)).abs()).nan_to_num(nan=inf)
        largest = max(largest, float(error.max()))
        squares += float(error.square().sum())
        a = a + a_low
        if len(finite := a[a.isfinite()]):
            least, greatest = min(least, float(finite.min())), max(greatest, float(finite.max()))
        release()
    return ReconstructionError(largest, sqrt(squares / x.numel()), max(greatest - least, 0.0))


def _halves(x: Tensor) -> tuple[Tensor, Tensor]:
    """Return two float64 tensors whose exact sum is ``x``: integers of 64 bits may have more digits than one of them."""
    if x.dtype not in (torch.int64, torch.uint64):
        return x.double(), torch.zeros((), dtype=torch.float64, device=x.device)
    whole, signed = x.view(torch.int64), x.dtype == torch.int64
    small = (whole < 2**53) & (whole > (-(2**53) if signed else -1))
    low = torch.where(small, 0, whole & 0x7FF)
    high = (whole - low).double()
    return high if signed else torch.where(whole < 0, high + 2.0**64, high), low.double()
