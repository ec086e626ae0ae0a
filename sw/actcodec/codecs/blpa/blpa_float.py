"""BLPA's fixed-point copies as published: floating-point steps, signs kept without exception (section 3.2).

The integer codec ``blpa`` does not keep all signs. It starts from SFPR's 16-bit integers, in which small negative values are
zero; it takes zero for positive; and signs are lost where zero lies beyond ``beta +- 3 gamma``. ReLU's gradient would not be
exact. Three points differ from the paper's formula, which would also lose signs:

- a value on the border of two steps belongs to the lower one, so that zero is not positive, as in ReLU;
- if ``beta +- 3 gamma`` does not reach one step across zero, the range is extended until it does, and steps are wider;
- gamma may be negative or zero: its magnitude counts.

Codes are limited at both ends, unlike in the published code.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from cdu_spec.affine import check_code_bits
from torch import Tensor

from actcodec.backends.backend import Backend
from actcodec.backends.named import backend as backend_of
from actcodec.backends.torch_backend import TorchBackend
from actcodec.codecs.actnn.float_forms import no_bitstream
from actcodec.codecs.affine.affine_scales import BLPA_REACH
from actcodec.codecs.copies import SteppedCopyCodec
from actcodec.golden.floating import steps
from actcodec.golden.floating.steps import Line
from actcodec.golden.formats import quotient

_GOLDEN = TorchBackend()


@dataclass(frozen=True, eq=False)
class FixedPoint:
    """Steps of channels; code c stands for values above ``first + c`` and up to ``first + c + 1`` steps."""

    bits: int
    step: Tensor  #: float32 (channels,), positive
    first: Tensor  #: int16 (channels,), ``1 - 2**bits`` to -1: the steps below and above zero always have codes

    @classmethod
    def around(cls, beta: Tensor, gamma: Tensor, bits: int, dtype: torch.dtype) -> FixedPoint:
        """Return steps for the range ``beta - 3 |gamma|`` to ``beta + 3 |gamma|``, extended across zero if necessary.

        Parameters
        ----------
        beta, gamma
            Finite floats (channels,).
        bits
            Bits per value: 1, 2, 4 or 8 (paper: K).
        dtype
            Dtype of the decoded values, in which a step must not vanish.
        """
        levels, half = 1 << bits, 1 << (bits - 1)
        beta, gamma = beta.to(torch.float64), gamma.to(torch.float64).abs()
        gamma = gamma.clamp_min(least_step(dtype) * levels / (2 * BLPA_REACH))
        published = 2 * BLPA_REACH * gamma / levels
        offset = (beta / published).floor()
        extended = quotient(beta.abs() + BLPA_REACH * gamma, levels - 1)
        reaches = (offset > -half) & (offset < half)
        step = torch.where(reaches, published, extended).clamp_max(torch.finfo(torch.float32).max)
        beyond = torch.where(beta > 0, -1.0, 1.0 - levels)
        return cls(bits, step.to(torch.float32), torch.where(reaches, offset - half, beyond).to(torch.int16))

    @property
    def nbytes(self) -> int:
        """Return the bytes of both parameters."""
        return sum(part.numel() * part.element_size() for part in (self.step, self.first))


@dataclass(frozen=True, eq=False)
class BlpaForm:
    """K-bit copy of a tensor; axis 1 counts channels, and a tensor of rank 1 is one channel."""

    shape: tuple[int, ...]
    dtype: torch.dtype
    grid: FixedPoint
    rectified: bool  #: no value was negative: negative reconstructions become zero
    packed: Tensor  #: uint8 (ceil(values * bits / 8),)
    backend: Backend  #: computes the values

    @classmethod
    def of(cls, x: Tensor, grid: FixedPoint, *, rectified: bool = False, backend: Backend = _GOLDEN) -> BlpaForm:
        """Return the copy of a float tensor."""
        packed = backend.run(steps.pack, x.detach(), grid.step, grid.first, grid.bits)
        return cls(tuple(x.shape), x.dtype, grid, rectified, packed, backend)

    @property
    def step(self) -> Tensor:
        """Return the steps, float32 (channels,), positive."""
        return self.grid.step

    @property
    def nbytes(self) -> int:
        """Return the bytes of codes, steps and first codes (shape, format and the flag are not counted)."""
        return self.packed.numel() + self.grid.nbytes

    def to_bytes(self) -> bytes:
        """Raise UserError: a floating-point form is not a stream."""
        raise no_bitstream()

    def keep_signs(self, x: Tensor) -> None:
        """Do nothing: no step goes across zero, so that signs are exact."""

    def decompress(self, backend: str | Backend = "torch") -> Tensor:
        """Return the values in shape and dtype of the original, limited to the dtype's range, by the codec's own backend."""
        return self.rebuilt()

    def rebuilt(self, line: Line | None = None) -> Tensor:
        """Implement :class:`~actcodec.codecs.copies.Copy`."""
        grid, rectified = self.grid, self.rectified
        return self.backend.run(
            steps.values, self.packed, grid.step, grid.first, grid.bits, self.shape, self.dtype, rectified=rectified, line=line
        )


@dataclass
class BlpaFloatCodec(SteppedCopyCodec):
    """Codec ``blpa-float``: BLPA's copy, three standard deviations around the mean of each channel, with exact signs.

    Takes any shape. Zero has no code of its own: it is decoded as half a step below, or as zero in tensors without negative
    values.

    Policy ``blpa`` (:mod:`actcodec.policies.groups.norm_groups`) takes the range from batch normalisation if there is one.

    Parameters
    ----------
    bits
        Bits per value: 1, 2, 4 or 8 (paper: K).
    backend
        ``torch``, or a backend that computes the same in less time, such as ``native``.
    """

    bits: int = 4
    backend: str | Backend = "torch"

    name = "blpa-float"

    def __post_init__(self) -> None:
        check_code_bits(self.bits)
        self._backend = backend_of(self.backend)

    @property
    def arithmetic(self) -> Backend:
        """Implement :class:`~actcodec.codecs.copies.CopyCodec`."""
        return self._backend

    def steps(self, beta: Tensor, gamma: Tensor, dtype: torch.dtype) -> Tensor:
        """Implement :class:`SteppedCopyCodec`."""
        return FixedPoint.around(beta, gamma, self.bits, dtype).step

    def copy(self, x: Tensor, middle: Tensor, deviation: Tensor, *, rectified: bool = False) -> BlpaForm:
        """Implement :class:`SteppedCopyCodec`."""
        grid = FixedPoint.around(middle, deviation, self.bits, x.dtype)
        return BlpaForm.of(x, grid, rectified=rectified, backend=self._backend)


def least_step(dtype: torch.dtype) -> float:
    """Return the least step of copies.

    It is twice the least step whose half is a normal number in float32 and not zero in ``dtype``, because extended steps can be
    half as wide.
    """
    details = torch.finfo(dtype)
    return 4 * max(torch.finfo(torch.float32).smallest_normal, details.smallest_normal * details.eps)
