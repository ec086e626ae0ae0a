"""Copies by codecs that scale channels (SFPR with or without a transform); their signs are made exact on request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

import torch
from cdu_spec.sfpr import SCALE_UNIT, SFPR_RECIPROCAL_BITS
from cdu_tools.errors import UserError
from torch import Tensor

from actcodec.backends.backend import Backend
from actcodec.backends.named import backend as backend_of
from actcodec.codecs.centring import CentredForm, compress_centred, decompress_centred
from actcodec.codecs.codec import SfprCodec
from actcodec.codecs.compressed import Compressed, Packed
from actcodec.codecs.copies import WIDEST, Copy, CopyCodec
from actcodec.codecs.sign_corrections import correct_signs, corrections, signs_of
from actcodec.golden.channel_statistics import channel_edges
from actcodec.golden.floating.steps import Line
from actcodec.golden.shapes import channels_shape, per_channel

#: Largest rounding error of a result in its dtype, as part of a channel's reach, with which the channel's input still follows.
_ROUNDING = 2.0**-4


class SignedCopy:
    """:class:`~actcodec.codecs.copies.Copy` of a stream, centres where channels are far from zero, and sign corrections.

    Parameters
    ----------
    x
        Tensor to copy, with any strides.
    codec
        Codec that makes the stream.
    rectified
        True if no value is negative; values that are not positive are then decoded as zero.
    """

    def __init__(self, x: Tensor, codec: SfprCodec, *, rectified: bool = False) -> None:
        self.shape, self.dtype = tuple(x.shape), x.dtype
        self._codec, self._rectified = codec, rectified
        self._backend = backend_of(codec.backend)
        self.form = compress_centred(x.detach().contiguous(), codec)
        self.corrections: Compressed | None = None  #: kept by :mod:`actcodec.codecs.sign_corrections`

    @property
    def unit(self) -> Tensor:
        """Return the step of SFPR, float32 (channels,), or (1,) where all channels share one."""
        stream = self.form.left if isinstance(self.form, CentredForm) else self.form
        assert isinstance(stream, Compressed), "the codec makes streams"
        return stream.reciprocals

    @property
    def nbytes(self) -> int:
        """Return the bytes of both streams and of the centres."""
        return self.form.nbytes + (0 if self.corrections is None else self.corrections.nbytes)

    def to_bytes(self) -> bytes:
        """Raise UserError: a copy may consist of two streams."""
        raise UserError("a copy whose signs are corrected is no single stream: compress the tensor with the codec itself")

    def keep_signs(self, x: Tensor) -> None:
        """Implement :class:`~actcodec.codecs.copies.Copy`."""
        if self.corrections is None:
            decoded = self._decoded()
            original = x.detach().contiguous().view(decoded.shape)
            self.corrections = corrections(decoded, self._units(decoded), original, self._backend)

    def rebuilt(self, line: Line | None = None) -> Tensor:
        """Implement :class:`~actcodec.codecs.copies.Copy`."""
        signs = None if self.corrections is None else signs_of(self.corrections, prod(self.shape), self._backend)
        decoded = self._decoded()
        if signs is not None or line is not None:
            correct_signs(decoded, self._units(decoded), signs, line, self._backend, rectified=self._rectified)
        return decoded.view(self.shape)

    def decompress(self, backend: str | Backend = "torch") -> Tensor:
        """Return the reconstructed values in shape and dtype of the original; the codec's own backend computes them."""
        return self.rebuilt()

    def _decoded(self) -> Tensor:
        """Return the stream's values with the centres added, a new tensor (N, channels, n) of the original's dtype."""
        return decompress_centred(self.form, self._codec).view(channels_shape(self.shape))

    def _units(self, decoded: Tensor) -> Tensor:
        """Return the step of each channel, float32 (channels,)."""
        return self.unit.expand(decoded.shape[1])


class SignedCodec(CopyCodec):
    """Wraps a codec that scales channels so that signs stay exact.

    Parameters
    ----------
    codec
        Codec that makes the streams; name, options and accepted shapes are taken from it.
    """

    def __init__(self, codec: SfprCodec) -> None:
        self.name, self.codec = codec.name, codec

    @property
    def arithmetic(self) -> Backend:
        """Implement :class:`CopyCodec` with the backend of the wrapped codec."""
        return backend_of(self.codec.backend)

    def compress(self, x: Tensor) -> SignedCopy:
        """Implement :class:`~actcodec.codecs.codec.Codec`."""
        copy = SignedCopy(x, self.codec, rectified=not bool((x < 0).any()))
        copy.keep_signs(x)
        return copy

    def decompress(self, compressed: Packed) -> Tensor:
        """Implement :class:`~actcodec.codecs.codec.Codec`."""
        return compressed.decompress()

    def copy(self, x: Tensor, middle: Tensor, deviation: Tensor) -> SignedCopy:
        """Implement :class:`CopyCodec`; signs are kept only after :meth:`SignedCopy.keep_signs`."""
        return SignedCopy(x, self.codec)

    def follows(self, copy: Copy, x: Tensor, middle: Tensor, deviation: Tensor) -> Tensor:
        """Implement :class:`CopyCodec`: true where neither scale nor format of x is much coarser than ``x - middle`` needs."""
        assert isinstance(copy, SignedCopy), "it is one of this codec's"
        least, greatest = self.arithmetic.run(channel_edges, per_channel(x.detach()))
        reach = torch.maximum(greatest - middle, middle - least)
        # The factor allows for the rounding of the unit, which is a reciprocal.
        scaled = copy.unit * (SCALE_UNIT * self.codec.S) <= WIDEST * (1 + 2.0**-SFPR_RECIPROCAL_BITS) * reach
        rounding = torch.finfo(x.dtype).eps * torch.maximum(greatest.abs(), least.abs())
        return scaled & (rounding <= _ROUNDING * reach)

    def takes(self, shape: Sequence[int]) -> bool:
        """Implement :class:`~actcodec.codecs.codec.Codec`."""
        return self.codec.takes(shape)

    def fits(self, shape: Sequence[int]) -> bool:
        """Implement :class:`~actcodec.codecs.codec.Codec`."""
        return self.codec.fits(shape)

    def set_epoch(self, epoch: int) -> None:
        """Implement :class:`~actcodec.codecs.codec.Codec`."""
        self.codec.set_epoch(epoch)

    def state_dict(self) -> dict[str, Any]:
        """Implement :class:`~actcodec.codecs.codec.Codec`."""
        return self.codec.state_dict()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Implement :class:`~actcodec.codecs.codec.Codec`."""
        self.codec.load_state_dict(state)
