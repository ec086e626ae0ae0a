"""Copies of activations that several operations share: the result of a batch normalisation, from which its input follows.

One copy serves the normalisation, the ReLU after it and the layers that read either
(:mod:`actcodec.policies.norm_groups`). Any codec makes copies that knows of each channel whether the input follows by them.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Protocol, cast

import torch
from torch import Tensor

from actcodec.backends.backend import Backend
from actcodec.backends.step_quantizer import Line
from actcodec.codecs.affine.affine_scales import BLPA_REACH
from actcodec.codecs.codec import Codec, check_finite, check_input
from actcodec.codecs.compressed import Packed
from actcodec.golden.formats import quotient
from actcodec.golden.shapes import per_channel

#: A channel's input follows by a copy of the result where its steps are at most so many times those around the middle.
WIDEST = 2.0


class Copy(Protocol):
    """A copy of one tensor."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the original."""

    @property
    def dtype(self) -> torch.dtype:
        """Of the original."""

    @property
    def nbytes(self) -> int:
        """Bytes of all that decoding needs."""

    def keep_signs(self, x: Tensor) -> None:
        """From now on positive values are positive in the copy, and no others; x has the signs of the original."""

    def rebuilt(self, line: Line | None = None) -> Tensor:
        """The values a', or what ``line`` makes of them, in shape and dtype of the original; beyond the dtype: its extremes."""

    def to_bytes(self) -> bytes:
        """Raises UserError: a floating-point form is not a stream."""

    def decompress(self, backend: str | Backend = "torch") -> Tensor:
        """The values a' in shape and dtype of the original; what lies beyond the dtype becomes its extremes."""


class CopyCodec(Codec):
    """Codecs that make copies. Channels are counted by the second axis; a tensor of rank 1 is one."""

    @property
    @abstractmethod
    def arithmetic(self) -> Backend:
        """What computes."""

    @abstractmethod
    def copy(self, x: Tensor, middle: Tensor, deviation: Tensor) -> Copy:
        """The copy of finite x, of whose channels middle and deviation, float (channels,), are known."""

    @abstractmethod
    def follows(self, copy: Copy, x: Tensor, middle: Tensor, deviation: Tensor) -> Tensor:
        """Channels, boolean, of which ``copy``, of x, has ``x - middle`` nearly as well as a copy of that would."""


class SteppedCopy(Copy, Protocol):
    """A copy in steps of one width for each channel, none of which goes across zero: it has all signs."""

    @property
    def step(self) -> Tensor:
        """float32 (channels,), positive."""


class SteppedCopyCodec(CopyCodec):
    """BLPA (section 3.2): steps follow from beta and gamma of a batch normalisation, or from a tensor's mean and deviation.

    Without batch normalisation the range of a channel is three standard deviations around its mean; it ends where values do. A
    tensor without negative values, which ReLU may have made, is decoded without them; its range is from zero to three standard
    deviations of the distribution around zero whose upper half it would be.
    """

    centred = True

    @abstractmethod
    def steps(self, beta: Tensor, gamma: Tensor, dtype: torch.dtype) -> Tensor:
        """Steps for ``beta - 3 |gamma|`` to ``beta + 3 |gamma|``, float32 (channels,); ``dtype`` is that of decoded values."""

    @abstractmethod
    def copy(self, x: Tensor, middle: Tensor, deviation: Tensor, *, rectified: bool = False) -> SteppedCopy:
        """See :class:`CopyCodec`; ``rectified``: no value is negative, and what is decoded as negative becomes zero."""

    def follows(self, copy: Copy, x: Tensor, middle: Tensor, deviation: Tensor) -> Tensor:
        """See :class:`CopyCodec`: where steps are at most twice those around zero."""
        around_zero = self.steps(torch.zeros_like(middle), deviation, torch.float32)
        return cast(SteppedCopy, copy).step <= WIDEST * around_zero

    def compress(self, x: Tensor) -> SteppedCopy:
        """See :class:`Codec`."""
        check_input(x)
        check_finite(x, self.arithmetic.channel_maxima)
        values = per_channel(x.detach())
        least, greatest = self.arithmetic.channel_edges(values)
        mean, variance = self.arithmetic.channel_moments(values, least, greatest)
        rectified = bool((least >= 0).all())
        if rectified:
            mean, variance = torch.zeros_like(mean), 2 * (variance + mean.square())
        reach = BLPA_REACH * variance.sqrt()
        low = torch.maximum(torch.zeros_like(least) if rectified else least, mean - reach)
        high = torch.minimum(greatest, mean + reach)
        return self.copy(x, (low + high) / 2, quotient(high - low, 2 * BLPA_REACH), rectified=rectified)

    def decompress(self, compressed: Packed) -> Tensor:
        """See :class:`Codec`."""
        return compressed.decompress(self.arithmetic)
