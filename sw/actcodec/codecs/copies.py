"""Copies of activations that several operations share: the result of a batch normalisation, from which its input follows.

One copy serves the normalisation, the ReLU after it and its readers (:mod:`actcodec.policies.groups.norm_groups`). A
codec can make such copies if it knows for each channel whether the input follows from them.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Protocol, cast

import torch
from torch import Tensor

from actcodec.backends.backend import Backend
from actcodec.codecs.affine.affine_scales import BLPA_REACH
from actcodec.codecs.codec import Codec, check_finite, check_input
from actcodec.codecs.compressed import Packed
from actcodec.golden.channel_statistics import channel_edges, channel_moments
from actcodec.golden.floating.steps import Line
from actcodec.golden.formats import quotient
from actcodec.golden.shapes import per_channel

#: Largest ratio of a channel's step to the step around its middle with which the input still follows from a copy of the result.
WIDEST = 2.0


class Copy(Protocol):
    """Copy of one tensor."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Return the shape of the original."""

    @property
    def dtype(self) -> torch.dtype:
        """Return the dtype of the original."""

    @property
    def nbytes(self) -> int:
        """Return the number of bytes that decoding needs."""

    def keep_signs(self, x: Tensor) -> None:
        """Make exactly those values of the copy positive that are positive in x, which has the signs of the original."""

    def rebuilt(self, line: Line | None = None) -> Tensor:
        """Return the values, transformed by ``line`` if given, in shape and dtype of the original, limited to the dtype."""

    def to_bytes(self) -> bytes:
        """Raise UserError: a floating-point form is not a stream."""

    def decompress(self, backend: str | Backend = "torch") -> Tensor:
        """Return the values in shape and dtype of the original, limited to the dtype's range."""


class CopyCodec(Codec):
    """Base class of codecs that make copies. Axis 1 counts channels; a tensor of rank 1 is one channel."""

    @property
    @abstractmethod
    def arithmetic(self) -> Backend:
        """Return the backend that computes."""

    @abstractmethod
    def copy(self, x: Tensor, middle: Tensor, deviation: Tensor) -> Copy:
        """Return a copy of finite x; ``middle`` and ``deviation`` of its channels are float (channels,)."""

    @abstractmethod
    def follows(self, copy: Copy, x: Tensor, middle: Tensor, deviation: Tensor) -> Tensor:
        """Return, as boolean (channels,), where ``copy`` of x keeps ``x - middle`` nearly as well as a copy of it would."""


class SteppedCopy(Copy, Protocol):
    """Copy in steps of one width per channel; no step contains values on both sides of zero, so that all signs are exact."""

    @property
    def step(self) -> Tensor:
        """Return the steps, float32 (channels,), positive."""


class SteppedCopyCodec(CopyCodec):
    """Codec of BLPA (section 3.2): steps follow from a batch normalisation's beta and gamma or from mean and deviation.

    Without batch normalisation, a channel's range is three standard deviations around its mean, cut off at the least and the
    greatest value. A tensor without negative values, such as the output of a ReLU, is taken for the upper half of a
    distribution around zero: its range is zero to three standard deviations of that distribution, and no value is decoded as
    negative.
    """

    centred = True

    @abstractmethod
    def steps(self, beta: Tensor, gamma: Tensor, dtype: torch.dtype) -> Tensor:
        """Return steps for ``beta - 3 |gamma|`` to ``beta + 3 |gamma|``, float32 (channels,), for decoding to ``dtype``."""

    @abstractmethod
    def copy(self, x: Tensor, middle: Tensor, deviation: Tensor, *, rectified: bool = False) -> SteppedCopy:
        """Implement :class:`CopyCodec`; ``rectified``: no value is negative, and negative reconstructions become zero."""

    def follows(self, copy: Copy, x: Tensor, middle: Tensor, deviation: Tensor) -> Tensor:
        """Implement :class:`CopyCodec`: true where steps are at most twice those around zero."""
        around_zero = self.steps(torch.zeros_like(middle), deviation, torch.float32)
        return cast(SteppedCopy, copy).step <= WIDEST * around_zero

    def compress(self, x: Tensor) -> SteppedCopy:
        """Implement :class:`Codec`."""
        check_input(x)
        check_finite(x, self.arithmetic)
        values = per_channel(x.detach())
        least, greatest = self.arithmetic.run(channel_edges, values)
        mean, variance = self.arithmetic.run(channel_moments, values, least, greatest)
        rectified = bool((least >= 0).all())
        if rectified:
            mean, variance = torch.zeros_like(mean), 2 * (variance + mean.square())
        reach = BLPA_REACH * variance.sqrt()
        low = torch.maximum(torch.zeros_like(least) if rectified else least, mean - reach)
        high = torch.minimum(greatest, mean + reach)
        return self.copy(x, (low + high) / 2, quotient(high - low, 2 * BLPA_REACH), rectified=rectified)

    def decompress(self, compressed: Packed) -> Tensor:
        """Implement :class:`Codec`."""
        return compressed.decompress(self.arithmetic)
