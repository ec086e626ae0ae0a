"""BLPA's copy without end: as many steps as values reach, predicted from their neighbours, entropy coded.

The paper spends K bits on every value, so that the range has to end at ``beta +- 3 gamma``, and neighbours that are alike cost
as much as others. Here the steps are the same, ``6 gamma / 2**K``, but they go on beyond the range, and what prediction
(:mod:`actcodec.golden.lorenzo`) leaves over of their numbers is written in as few bits as it needs
(:mod:`actcodec.golden.integer_coder`), as in codec ``cusz``. K may be any number: it says how fine steps are, and nothing about
what they cost. Signs are kept as in codec ``blpa-float``: no step goes across zero, and zero belongs to the step below.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite

import torch
from cdu_tools.errors import UserError
from torch import Tensor

from actcodec.backends.backend import Backend
from actcodec.codecs.actnn.float_forms import as_dtype, no_bitstream
from actcodec.codecs.affine.affine_scales import BLPA_REACH
from actcodec.codecs.blpa.blpa_float import least_step
from actcodec.codecs.copies import Change, SteppedCopyCodec, unchanged
from actcodec.codecs.shapes import channel_boxes, channel_view, channels_shape, header_bytes, per_channel
from actcodec.golden.integer_coder import CodedIntegers
from actcodec.golden.lorenzo import MAX_MAGNITUDE
from actcodec.golden.predicted_integers import decode, encode

_LEAST_BITS, _MOST_BITS = 1, 12


@dataclass(frozen=True, eq=False)
class CodedCopy:
    """A :class:`~actcodec.codecs.copies.SteppedCopy`. Code c: the values above c steps up to c + 1, by their middle."""

    shape: tuple[int, ...]
    dtype: torch.dtype
    step: Tensor  #: float32 (channels,), positive
    rectified: bool  #: no value was negative: what is decoded as negative becomes zero
    dimensions: int  #: axes that predict, 0 to 3
    coded: CodedIntegers

    @property
    def nbytes(self) -> int:
        """Bytes of a header, the shape, steps and coded differences."""
        return header_bytes(self.shape) + self.step.numel() * self.step.element_size() + self.coded.nbytes

    def to_bytes(self) -> bytes:
        """Raises UserError: a floating-point form is not a stream."""
        raise no_bitstream()

    def keep_signs(self, x: Tensor) -> None:
        """Nothing: no step goes across zero."""

    def rebuilt(self, change: Change) -> Tensor:
        """See :class:`~actcodec.codecs.copies.Copy`."""
        _, channels, length = channels_shape(self.shape)
        rebuilt = torch.empty(self.shape, dtype=self.dtype, device=self.step.device)
        for samples, codes in decode(self.coded, self.shape, self.dimensions):
            values = per_channel(codes.to(torch.float32)).add_(0.5).mul_(self.step[:, None])
            box = (samples if len(self.shape) > 1 else slice(0, 1), slice(0, channels), slice(0, length))
            changed = change(values.clamp_min_(0) if self.rectified else values, box)
            rebuilt[samples] = as_dtype(changed, self.dtype).view(codes.shape)
        return rebuilt

    def decompress(self, backend: str | Backend = "torch") -> Tensor:
        """The values a' in shape and dtype of the original; what lies beyond the dtype becomes its extremes."""
        return self.rebuilt(unchanged)


@dataclass
class BlpaCodedCodec(SteppedCopyCodec):
    """``blpa-coded``: any tensor in steps of ``6 gamma / 2**bits``, predicted and coded; gamma is the deviation of its channel.

    Signs are kept; nothing is random; no error is greater than half a step. Zero has no code of its own: it is decoded as half
    a step below, or as zero in tensors without negative values.

    Policy ``blpa-coded`` (:mod:`actcodec.policies.norm_groups`) takes gamma from batch normalisation where there is one.

    Parameters
    ----------
    bits
        K, 1 to 12, whole or not: 2**K steps reach from three deviations below the mean to three above.
    """

    bits: float = 3.5

    name = "blpa-coded"

    def __post_init__(self) -> None:
        number = isinstance(self.bits, (int, float)) and not isinstance(self.bits, bool)
        if not (number and isfinite(self.bits) and _LEAST_BITS <= self.bits <= _MOST_BITS):
            raise UserError(f"bits = {self.bits!r} is not allowed: use a number from {_LEAST_BITS} to {_MOST_BITS}")

    def steps(self, beta: Tensor, gamma: Tensor, dtype: torch.dtype) -> Tensor:
        """See :class:`SteppedCopyCodec`."""
        step = 2 * BLPA_REACH * gamma.to(torch.float64).abs() / 2**self.bits
        return step.clamp(least_step(dtype), torch.finfo(torch.float32).max).to(torch.float32)

    def copy(self, x: Tensor, middle: Tensor, deviation: Tensor, *, rectified: bool = False) -> CodedCopy:
        """See :class:`SteppedCopyCodec`; steps are wider where a value would have more than 2**27 of them."""
        shape, original = tuple(x.shape), x.detach()
        step = torch.maximum(self.steps(middle, deviation, x.dtype), _largest(original) / (MAX_MAGNITUDE / 2))

        def quantised(part: Tensor) -> Tensor:
            values = per_channel(part.to(torch.float32))
            steps = (values / step[: values.shape[1], None]).ceil_().sub_(1)
            # Where the quotient is too small for a float, the sign still counts.
            return torch.where(values > 0, steps.clamp_min(0), steps.clamp_max(-1)).to(torch.int32).view(part.shape)

        return CodedCopy(shape, x.dtype, step, rectified, *encode(original, quantised, None))


def _largest(x: Tensor) -> Tensor:
    """Largest magnitude of each channel, float32 (channels,)."""
    parts = (channel_view(x, box) for box in channel_boxes(tuple(x.shape), x.device))
    return torch.cat([torch.maximum(part.amax((0, 2)), -part.amin((0, 2))) for part in parts]).to(torch.float32)
