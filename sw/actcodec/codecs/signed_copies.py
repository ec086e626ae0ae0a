"""Copies by codecs that scale channels (SFPR, with a transform behind it or without); their signs are exact once asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

import torch
from cdu_spec.sfpr import SCALE_UNIT, SFPR_RECIPROCAL_BITS
from cdu_tools.errors import UserError
from torch import Tensor

from actcodec.backends.backend import Backend
from actcodec.backends.backend import backend as backend_of
from actcodec.backends.step_quantizer import Line
from actcodec.codecs.centring import CentredForm, compress_centred, decompress_centred
from actcodec.codecs.codec import SfprCodec
from actcodec.codecs.compressed import Compressed, Packed
from actcodec.codecs.copies import WIDEST, Copy, CopyCodec
from actcodec.codecs.sign_corrections import corrections, signs_of
from actcodec.golden.shapes import channels_shape, per_channel

#: A channel's input does not follow by a result of which rounding, in its dtype, may be more than this part.
_ROUNDING = 2.0**-4


class SignedCopy:
    """A :class:`~actcodec.codecs.copies.Copy`: a stream, centres beside it where channels are far from zero, and corrections.

    Parameters
    ----------
    x
        Any strides.
    codec
        Makes the stream.
    rectified
        No value is negative: what is not positive is decoded as zero.
    """

    def __init__(self, x: Tensor, codec: SfprCodec, *, rectified: bool = False) -> None:
        self.shape, self.dtype = tuple(x.shape), x.dtype
        self._codec, self._rectified = codec, rectified
        self._backend = backend_of(codec.backend)
        self.form = compress_centred(x.detach().contiguous(), codec)
        self.corrections: Compressed | None = None  #: see :mod:`actcodec.codecs.sign_corrections`

    @property
    def unit(self) -> Tensor:
        """A step of SFPR, float32 (channels,), or (1,) where all have the same."""
        stream = self.form.left if isinstance(self.form, CentredForm) else self.form
        assert isinstance(stream, Compressed), "the codec makes streams"
        return stream.reciprocals

    @property
    def nbytes(self) -> int:
        """Bytes of both streams and of the centres."""
        return self.form.nbytes + (0 if self.corrections is None else self.corrections.nbytes)

    def to_bytes(self) -> bytes:
        """Raises UserError: a copy may be two streams."""
        raise UserError("a copy whose signs are corrected is no single stream: compress the tensor with the codec itself")

    def keep_signs(self, x: Tensor) -> None:
        """See :class:`~actcodec.codecs.copies.Copy`."""
        if self.corrections is None:
            decoded = self._decoded()
            original = x.detach().contiguous().view(decoded.shape)
            self.corrections = corrections(decoded, self._units(decoded), original, self._backend)

    def rebuilt(self, line: Line | None = None) -> Tensor:
        """See :class:`~actcodec.codecs.copies.Copy`."""
        signs = None if self.corrections is None else signs_of(self.corrections, prod(self.shape), self._backend)
        decoded = self._decoded()
        if signs is not None or line is not None:
            self._backend.sign_arithmetic().finish(decoded, self._units(decoded), signs, line, rectified=self._rectified)
        return decoded.view(self.shape)

    def decompress(self, backend: str | Backend = "torch") -> Tensor:
        """The values a' in shape and dtype of the original, by the codec's own backend."""
        return self.rebuilt()

    def _decoded(self) -> Tensor:
        """The stream's values and the centres, a new tensor (N, channels, n) of the dtype of the original."""
        return decompress_centred(self.form, self._codec).view(channels_shape(self.shape))

    def _units(self, decoded: Tensor) -> Tensor:
        """A step for each channel."""
        return self.unit.expand(decoded.shape[1])


class SignedCodec(CopyCodec):
    """Any codec that scales channels, with signs that stay exact.

    Parameters
    ----------
    codec
        Makes streams; its name, options and shapes are those of this one.
    """

    def __init__(self, codec: SfprCodec) -> None:
        self.name, self.codec = codec.name, codec

    @property
    def arithmetic(self) -> Backend:
        """See :class:`CopyCodec`: that of the codec."""
        return backend_of(self.codec.backend)

    def compress(self, x: Tensor) -> SignedCopy:
        """See :class:`~actcodec.codecs.codec.Codec`."""
        copy = SignedCopy(x, self.codec, rectified=not bool((x < 0).any()))
        copy.keep_signs(x)
        return copy

    def decompress(self, compressed: Packed) -> Tensor:
        """See :class:`~actcodec.codecs.codec.Codec`."""
        return compressed.decompress()

    def copy(self, x: Tensor, middle: Tensor, deviation: Tensor) -> SignedCopy:
        """See :class:`CopyCodec`; signs are not kept before they are asked for."""
        return SignedCopy(x, self.codec)

    def follows(self, copy: Copy, x: Tensor, middle: Tensor, deviation: Tensor) -> Tensor:
        """See :class:`CopyCodec`: where neither the scale nor the format of x is much coarser than ``x - middle`` needs."""
        assert isinstance(copy, SignedCopy), "it is one of this codec's"
        least, greatest = self.arithmetic.channel_edges(per_channel(x.detach()))
        reach = torch.maximum(greatest - middle, middle - least)
        # A unit is a reciprocal, which is rounded.
        scaled = copy.unit * (SCALE_UNIT * self.codec.S) <= WIDEST * (1 + 2.0**-SFPR_RECIPROCAL_BITS) * reach
        rounding = torch.finfo(x.dtype).eps * torch.maximum(greatest.abs(), least.abs())
        return scaled & (rounding <= _ROUNDING * reach)

    def takes(self, shape: Sequence[int]) -> bool:
        """See :class:`~actcodec.codecs.codec.Codec`."""
        return self.codec.takes(shape)

    def fits(self, shape: Sequence[int]) -> bool:
        """See :class:`~actcodec.codecs.codec.Codec`."""
        return self.codec.fits(shape)

    def set_epoch(self, epoch: int) -> None:
        """See :class:`~actcodec.codecs.codec.Codec`."""
        self.codec.set_epoch(epoch)

    def state_dict(self) -> dict[str, Any]:
        """See :class:`~actcodec.codecs.codec.Codec`."""
        return self.codec.state_dict()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """See :class:`~actcodec.codecs.codec.Codec`."""
        self.codec.load_state_dict(state)
