"""Channels far from zero: their centres are kept beside a codec's own form, and the codec gets what is left of the values.

A codec whose steps follow from the largest magnitude of a channel spends them on the channel's distance from zero: where that
is 30 standard deviations, eight bits leave steps of a quarter of one, and S = 1.125 saturates half of the values. A
normalisation after it takes the mean off, so that its gradient consists of what is lost.

Centres are taken off before any backend sees the values: streams, and what hardware does, are as always.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import torch
from cdu_spec.geometry import BLOCK_SIDE
from cdu_tools.errors import UserError
from torch import Tensor

from actcodec.backends.backend import Backend
from actcodec.codecs.codec import Codec
from actcodec.codecs.compressed import Packed
from actcodec.golden.codes import pack_tight, unpack_tight
from actcodec.golden.pieces import piece_values

#: A channel is far from zero where its mean is more than so many of its standard deviations: three bits of a scale around zero.
FAR = 8.0
#: Fewer values have no centre of their own: it would cost more than a bit per value.
LEAST_VALUES = 32
#: Sums of squares that float32 holds in full.
_LEAST_SQUARE, _MOST_SQUARE = 2.0**-100, 2.0**120
#: What part of a mean square may be nothing but rounding of sums in float32.
_NOISE = 2.0**-16
#: Values that are summed at once, at least.
_PIECE = 1 << 18


@dataclass(frozen=True, eq=False)
class Centres:
    """What was taken off a tensor seen as (n, channels, values), all values of a channel or of a map having one centre."""

    view: tuple[int, int, int]
    mask: Tensor  #: uint8 (ceil(channels / 8),): which channels are far from zero
    values: Tensor  #: (1 or n, such channels), of the tensor's own dtype, in which a constant channel has an exact centre

    @classmethod
    def of(cls, x: Tensor) -> Centres | None:
        """The centres of x, contiguous and of rank 2 or more; None where no channel is far from zero.

        Channels are counted by axis 1. Where maps of a channel are far from its mean, each near a mean of its own, every map
        (n, c) has a centre. A tensor of rank 2 without such columns is looked at row by row. Channels whose
        least or greatest value is zero stay as they are: ReLU's zeros remain zeros.
        """
        if x.ndim > 2:
            return cls._of_maps(x, (x.shape[0], x.shape[1], prod(x.shape[2:])))
        if x.ndim < 2:
            return None
        return cls._of_maps(x, (x.shape[0], x.shape[1], 1)) or cls._of_maps(x, (1, *x.shape))

    @classmethod
    def _of_maps(cls, x: Tensor, view: tuple[int, int, int]) -> Centres | None:
        n, _, length = view
        if n * length < LEAST_VALUES:
            return None
        maps = x.detach().view(view)
        axis = 2 if length > 1 else 0  # over columns of single values the sums are as small
        sums, squares = _moments(maps, axis)
        mean, square = sums.sum(0) / (n * length), squares.sum(0) / (n * length)
        far = _far(mean.square(), square)
        apart = _apart(sums / length, square) if n > 1 and length >= LEAST_VALUES else torch.zeros_like(far)
        if not bool((far | apart).any()):
            return None
        least, greatest = maps.amin(axis).view(-1, view[1]), maps.amax(axis).view(-1, view[1])
        chosen = (far | apart) & (least.amin(0) != 0) & (greatest.amax(0) != 0)
        if bool((apart & chosen).any()):
            centres = sums / length
        else:
            centres, least, greatest = mean[None], least.amin(0, keepdim=True), greatest.amax(0, keepdim=True)
        if not bool(chosen.any()):
            return None
        # Within the values, so that the centre of a constant is that constant.
        values = centres.clamp(least.to(torch.float64), greatest.to(torch.float64))[:, chosen].to(x.dtype)
        if x.ndim == 4 and x.shape[2] % BLOCK_SIDE:
            # Maps share blocks: a channel that is nothing but zeros has a scale of 1, in which a transform's errors around
            # its neighbours would be large. A centre beside the constant leaves it the scale of a unit in the last place.
            beside = values * (1 - torch.finfo(x.dtype).eps)
            values = torch.where((least == greatest)[:, chosen], beside, values)
        return cls(view, pack_tight(chosen.to(torch.uint8), 1), values)

    @property
    def nbytes(self) -> int:
        """Bytes of mask and values."""
        return self.mask.numel() + self.values.numel() * self.values.element_size()

    def taken_off(self, x: Tensor) -> Tensor:
        """``x`` less its centres, a new tensor."""
        return (x.detach().view(self.view) - self._spread()).view(x.shape)

    def put_back(self, y: Tensor) -> Tensor:
        """``y`` with the centres added, in place; what lies beyond the dtype becomes its extremes."""
        limit = torch.finfo(y.dtype)
        y.view(self.view).add_(self._spread()).clamp_(limit.min, limit.max)
        return y

    def _spread(self) -> Tensor:
        """All centres, zeros for channels that have none: (1 or n, channels, 1)."""
        channels = self.view[1]
        spread = self.values.new_zeros(len(self.values), channels)
        spread[:, unpack_tight(self.mask, 1, channels).to(torch.bool)] = self.values
        return spread[:, :, None]


@dataclass(frozen=True, eq=False)
class CentredForm:
    """A codec's form of what is left of a tensor, and the centres beside it."""

    centres: Centres
    left: Packed
    codec: Codec

    @property
    def nbytes(self) -> int:
        """Bytes of the codec's form and of the centres."""
        return self.left.nbytes + self.centres.nbytes

    def to_bytes(self) -> bytes:
        """Raises UserError: centres are in no stream."""
        raise UserError("a tensor with centres beside it has no bitstream: compress it with the codec itself")

    def decompress(self, backend: str | Backend = "torch") -> Tensor:
        """The reconstructed tensor, by the codec's own backend."""
        return self.centres.put_back(self.codec.decompress(self.left))


def compress_centred(x: Tensor, codec: Codec) -> Packed:
    """What ``codec`` makes of contiguous ``x``; and centres beside it where the codec is :attr:`Codec.centred` and x is far."""
    centres = Centres.of(x) if codec.centred else None
    return codec.compress(x) if centres is None else CentredForm(centres, codec.compress(centres.taken_off(x)), codec)


def decompress_centred(packed: Packed, codec: Codec) -> Tensor:
    """The tensor of what :func:`compress_centred` made."""
    return packed.decompress() if isinstance(packed, CentredForm) else codec.decompress(packed)


def _far(distance: Tensor, square: Tensor) -> Tensor:
    """Where a squared distance from zero is more than FAR**2 times the rest of a mean square."""
    return distance > FAR**2 * (square - distance)


def _apart(means: Tensor, square: Tensor) -> Tensor:
    """Channels whose maps, of these means (n, channels), are still far from zero when the mean of the channel is off."""
    within, left = square - means.square().mean(0), square - means.mean(0).square()
    return _far(left - within, left) & (left > _NOISE * square)


def _moments(maps: Tensor, axis: int) -> tuple[Tensor, Tensor]:
    """Sums of values and of their squares along axis 2, or 0, of (n, channels, values), float64 (n or 1, channels)."""
    rows = maps.flatten(0, 1) if axis else maps.flatten(1)
    values = max(_PIECE, piece_values(rows.numel(), rows.device))
    found = [_sums(piece, axis // 2) for piece in torch.split(rows, max(1, values // rows.shape[1]))]
    sums, squares = (torch.cat(parts) if axis else torch.stack(parts).sum(0) for parts in zip(*found, strict=True))
    return sums.view(-1, maps.shape[1]), squares.view(-1, maps.shape[1])


def _sums(piece: Tensor, axis: int) -> tuple[Tensor, Tensor]:
    """Sums of a matrix and of its squares along an axis, computed in float32 or, where squares leave its range, in float64."""
    values = piece.to(torch.float32)
    sums, squares = values.sum(axis), _squares(values, axis)
    held = (squares >= _LEAST_SQUARE) & (squares <= _MOST_SQUARE) | ((squares == 0) & (sums == 0))
    if not bool(held.all()):
        values = piece.to(torch.float64)
        sums, squares = values.sum(axis), _squares(values, axis)
    return sums.to(torch.float64), squares


def _squares(values: Tensor, axis: int) -> Tensor:
    """Sums of squares along an axis; torch's norm makes no temporary tensor, but takes ten times as long along columns."""
    if axis == 0:
        return values.square().sum(0).to(torch.float64)
    norms: Tensor = torch.linalg.vector_norm(values, dim=1)
    return norms.to(torch.float64).square()
