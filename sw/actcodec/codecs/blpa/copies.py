"""Copies of activations in steps that follow from a middle and a deviation of each channel (BLPA, section 3.2)."""

from __future__ import annotations

from abc import abstractmethod
from typing import Protocol

import torch
from torch import Tensor

from actcodec.backends.backend import Backend
from actcodec.codecs.affine.affine_scales import BLPA_REACH
from actcodec.codecs.codec import Codec, check_finite, check_input
from actcodec.codecs.compressed import Packed
from actcodec.codecs.shapes import per_channel


class Copy(Protocol):
    """A copy that keeps the sign of every value: positive ones stay positive, all others do not become so."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the original."""

    @property
    def dtype(self) -> torch.dtype:
        """Of the original."""

    @property
    def step(self) -> Tensor:
        """float32 (channels,), positive."""

    @property
    def nbytes(self) -> int:
        """Bytes of all that decoding needs."""

    def values(self) -> Tensor:
        """The values a', float32 (N, channels, n)."""

    def to_bytes(self) -> bytes:
        """Raises UserError: a floating-point form is not a stream."""

    def decompress(self, backend: str | Backend = "torch") -> Tensor:
        """The values a' in shape and dtype of the original; what lies beyond the dtype becomes its extremes."""


class CopyCodec(Codec):
    """Codecs whose steps follow from beta and gamma of a batch normalisation, or from a tensor's own mean and deviation.

    Without batch normalisation the range of a channel is three standard deviations around its mean; it ends where values do. A
    tensor without negative values, which ReLU may have made, is decoded without them; its range is from zero to three standard
    deviations of the distribution around zero whose upper half it would be. Channels are counted by the second axis.
    """

    centred = True

    @abstractmethod
    def steps(self, beta: Tensor, gamma: Tensor, dtype: torch.dtype) -> Tensor:
        """Steps for ``beta - 3 |gamma|`` to ``beta + 3 |gamma|``, float32 (channels,); ``dtype`` is that of decoded values."""

    @abstractmethod
    def copy(self, x: Tensor, beta: Tensor, gamma: Tensor, *, rectified: bool = False) -> Copy:
        """The copy of finite x; ``rectified``: no value is negative, and what is decoded as negative becomes zero."""

    def compress(self, x: Tensor) -> Copy:
        """See :class:`Codec`."""
        check_input(x)
        check_finite(x)
        values = per_channel(x.detach().to(torch.float64))
        least, greatest = values.amin((0, 2)), values.amax((0, 2))
        variance, mean = torch.var_mean(values, dim=(0, 2), correction=0)
        rectified = bool((least >= 0).all())
        if rectified:
            mean, variance = torch.zeros_like(mean), 2 * (variance + mean.square())
        reach = BLPA_REACH * variance.sqrt()
        low = torch.maximum(torch.zeros_like(least) if rectified else least, mean - reach)
        high = torch.minimum(greatest, mean + reach)
        return self.copy(x, (low + high) / 2, (high - low) / (2 * BLPA_REACH), rectified=rectified)

    def decompress(self, compressed: Packed) -> Tensor:
        """See :class:`Codec`."""
        return compressed.decompress()
