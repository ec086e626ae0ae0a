"""BLPA's copy with unlimited range: as many steps as values reach, predicted from their neighbours, entropy coded.

The paper uses K bits for every value, so that the range has to end at ``beta +- 3 gamma``, and similar neighbours cost as much
as others. Here the steps are the same, ``6 gamma / 2**K``, but continue beyond the range; their numbers are predicted
(:mod:`actcodec.golden.lorenzo`) and the differences coded in as few bits as they need (:mod:`actcodec.golden.integer_coder`),
as in codec ``cusz``. K may be any number: it sets the step and not the size. Signs are kept as in codec ``blpa-float``: no step
goes across zero, and zero belongs to the step below.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from cdu_tools.errors import UserError
from cdu_tools.near_names import either
from cdu_tools.numbers import is_real
from torch import Tensor

from actcodec.backends.backend import Backend
from actcodec.backends.named import backend as backend_of
from actcodec.codecs.actnn.float_forms import no_bitstream
from actcodec.codecs.affine.affine_scales import BLPA_REACH
from actcodec.codecs.blpa.blpa_float import least_step
from actcodec.codecs.copies import SteppedCopyCodec
from actcodec.golden.floating import predicted
from actcodec.golden.floating.steps import Line
from actcodec.golden.lorenzo import MAX_MAGNITUDE
from actcodec.golden.predicted_integers import AUTO, CODERS, Coded
from actcodec.golden.sfpr import channel_maxima
from actcodec.golden.shapes import header_bytes, per_channel

#: Least and greatest value of the option ``bits``.
LEAST_BITS, MOST_BITS = 1, 12


@dataclass(frozen=True, eq=False)
class CodedCopy:
    """:class:`~actcodec.codecs.copies.SteppedCopy` in which code c stands for values above c and up to c + 1 steps.

    Values are decoded to the middle of their step.
    """

    shape: tuple[int, ...]
    dtype: torch.dtype
    step: Tensor  #: float32 (channels,), positive
    rectified: bool  #: no value was negative: negative reconstructions become zero
    dimensions: int  #: axes that predict, 0 to 3
    coded: Coded
    backend: Backend  #: computes the values

    @property
    def nbytes(self) -> int:
        """Return the bytes of a header, the shape, steps and coded differences."""
        return header_bytes(self.shape) + self.step.numel() * self.step.element_size() + self.coded.nbytes

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
        found = predicted.Predicted(self.dimensions, self.coded, self.step.new_zeros(0, dtype=torch.int64))
        return self.backend.run(
            predicted.middles, found, self.step, self.shape, self.dtype, rectified=self.rectified, line=line
        )


@dataclass
class BlpaCodedCodec(SteppedCopyCodec):
    """Codec ``blpa-coded``: steps of ``6 gamma / 2**bits``, predicted and coded; gamma is the deviation of a channel.

    Takes any shape. Signs are kept; nothing is random; no error is greater than half a step. Zero has no code of its own: it is
    decoded as half a step below, or as zero in tensors without negative values.

    Policy ``blpa-coded`` (:mod:`actcodec.policies.groups.norm_groups`) takes gamma from batch normalisation if there is one.

    Parameters
    ----------
    bits
        K, 1 to 12, whole or not: 2**K steps reach from three deviations below the mean to three above.
    backend
        ``torch``, or a backend that computes the same in less time, such as ``native``.
    coder
        ``deflate``: Lorenzo's prediction and zlib; ``contexts``: tables for contexts of neighbours and interleaved rANS, with
        fewer bytes, in less time by backend ``native`` and in more by ``torch``; ``auto``: ``contexts`` by kernels of
        ``native``, ``deflate`` elsewhere. All keep the same values.
    """

    bits: float = 3.5
    backend: str | Backend = "torch"
    coder: str = AUTO

    name = "blpa-coded"

    def __post_init__(self) -> None:
        if not is_real(self.bits, LEAST_BITS, MOST_BITS):
            raise UserError(f"bits = {self.bits!r} is not allowed: use a number from {LEAST_BITS} to {MOST_BITS}")
        if self.coder not in CODERS:
            raise UserError(f"coder = {self.coder!r} is not allowed: use {either(CODERS)}")
        self._backend = backend_of(self.backend)

    @property
    def arithmetic(self) -> Backend:
        """Implement :class:`~actcodec.codecs.copies.CopyCodec`."""
        return self._backend

    def steps(self, beta: Tensor, gamma: Tensor, dtype: torch.dtype) -> Tensor:
        """Implement :class:`SteppedCopyCodec`."""
        step = 2 * BLPA_REACH * gamma.to(torch.float64).abs() / 2**self.bits
        return step.clamp(least_step(dtype), torch.finfo(torch.float32).max).to(torch.float32)

    def copy(self, x: Tensor, middle: Tensor, deviation: Tensor, *, rectified: bool = False) -> CodedCopy:
        """Implement :class:`SteppedCopyCodec`; steps are wider where a value would have more than 2**27 of them."""
        x = x.detach()
        widest = self._backend.run(channel_maxima, per_channel(x)).to(torch.float32) / (MAX_MAGNITUDE / 2)
        step = torch.maximum(self.steps(middle, deviation, x.dtype), widest)
        found = self._backend.run(predicted.cells, x, step, self.coder)
        return CodedCopy(tuple(x.shape), x.dtype, step, rectified, found.dimensions, found.coded, self._backend)
