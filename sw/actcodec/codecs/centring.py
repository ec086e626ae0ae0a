"""Centres of channels far from zero, kept beside a codec's own form of the values less their centres.

A codec whose steps follow from the largest magnitude of a channel spends them on the channel's distance from zero: at a
distance of 30 standard deviations, the steps of eight bits are a quarter of a standard deviation, and S = 1.125 saturates half
of the values. A normalisation after the layer subtracts the mean, so that its gradient depends on the part that is lost.

Centres are subtracted before any backend sees the values: streams and hardware are the same with and without them.

Where kernels are at hand, they tell in one pass that no channel comes near the limit, which is so for most tensors; the exact
statistics are then not computed.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from cdu_spec.geometry import BLOCK_SIDE
from cdu_tools.errors import UserError
from torch import Tensor

from actcodec.backends.backend import Backend
from actcodec.backends.near_zero import surely_near_zero
from actcodec.codecs.codec import Codec
from actcodec.codecs.compressed import Packed
from actcodec.golden.codes import pack_tight, unpack_tight
from actcodec.golden.near_zero import FAR, LEAST_SQUARE, LEAST_VALUES, MOST_SQUARE, channel_views
from actcodec.golden.pieces import piece_values
from actcodec.golden.sfpr import UnfitValuesError

#: Part of the mean square of a channel far from zero that its mean, or the means of its maps, have at least: by the definition
#: of FAR it is 1 - 1 / (FAR**2 + 1).
_LEAST_SHARE = 1 - 2 / FAR**2
#: Part of a mean square that may be nothing but rounding of sums in float32.
_NOISE = 2.0**-16
#: Least number of values that are summed at once.
_PIECE = 1 << 18
#: Magnitude in float16 above which a reconstruction may be beyond the format's end.
_NEAR_END = torch.finfo(torch.float16).max / 2


@dataclass(frozen=True, eq=False)
class Centres:
    """Centres subtracted from a tensor seen as (n, channels, values); all values of a channel or of a map share one."""

    view: tuple[int, int, int]
    mask: Tensor  #: uint8 (ceil(channels / 8),): bits of the channels that are far from zero
    values: Tensor  #: (1 or n, far channels), of the tensor's own dtype, in which a constant channel has an exact centre

    @classmethod
    def of(cls, x: Tensor) -> Centres | None:
        """Return the centres of x, contiguous and of rank 2 or more; None where no channel is far from zero.

        Axis 1 counts channels. Where maps of a channel are far from its mean, each near a mean of its own, every map (n, c) has
        a centre. If a tensor of rank 2 has no such columns, its rows are tried. Channels whose least or greatest value is zero
        have no centre, so that ReLU's zeros remain zeros.
        """
        found = (cls._of_maps(x, view) for view in channel_views(x.shape))
        return next((centres for centres in found if centres is not None), None)

    @classmethod
    def _of_maps(cls, x: Tensor, view: tuple[int, int, int]) -> Centres | None:
        n, _, length = view
        maps = x.detach().view(view)
        if surely_near_zero(maps):
            return None
        axis = 2 if length > 1 else 0  # with maps of single values, sums over the samples are as small
        sums, squares = _moments(maps, axis)
        mean, square = sums.sum(0) / (n * length), squares.sum(0) / (n * length)
        by_map = n > 1 and length >= LEAST_VALUES
        means = sums / length if by_map else mean[None]
        if not bool((means.square().mean(0) > _LEAST_SHARE * square).any()):
            return None
        far = _far(mean.square(), square)
        apart = _apart(means, square) if by_map else torch.zeros_like(far)
        if not bool((far | apart).any()):
            return None
        least, greatest = maps.amin(axis).view(-1, view[1]), maps.amax(axis).view(-1, view[1])
        chosen = (far | apart) & (least.amin(0) != 0) & (greatest.amax(0) != 0)
        if bool((apart & chosen).any()):
            centres = means
        else:
            centres, least, greatest = mean[None], least.amin(0, keepdim=True), greatest.amax(0, keepdim=True)
        if not bool(chosen.any()):
            return None
        # The centre is limited to the range of the values, so that the centre of a constant is that constant.
        values = centres.clamp(least.to(torch.float64), greatest.to(torch.float64))[:, chosen].to(x.dtype)
        if x.ndim == 4 and x.shape[2] % BLOCK_SIDE:
            # Maps share blocks. A channel of nothing but zeros has a scale of 1, in which errors of its neighbours' transform
            # would be large. A centre next to the constant leaves the channel the scale of a unit in the last place.
            beside = values * (1 - torch.finfo(x.dtype).eps)
            values = torch.where((least == greatest)[:, chosen], beside, values)
        return cls(view, pack_tight(chosen.to(torch.uint8), 1), values)

    @property
    def nbytes(self) -> int:
        """Return the bytes of mask and values."""
        return self.mask.numel() + self.values.numel() * self.values.element_size()

    def taken_off(self, x: Tensor) -> Tensor:
        """Return ``x`` less its centres, a new tensor."""
        return (x.detach().view(self.view) - self._spread()).view(x.shape)

    def put_back(self, y: Tensor) -> Tensor:
        """Add the centres to ``y`` in place, limited to the dtype's range, and return ``y``."""
        limit = torch.finfo(y.dtype)
        y.view(self.view).add_(self._spread()).clamp_(limit.min, limit.max)
        return y

    def _spread(self) -> Tensor:
        """Return all centres, zeros for channels without one: (1 or n, channels, 1)."""
        channels = self.view[1]
        spread = self.values.new_zeros(len(self.values), channels)
        spread[:, unpack_tight(self.mask, 1, channels).to(torch.bool)] = self.values
        return spread[:, :, None]


@dataclass(frozen=True, eq=False)
class CentredForm:
    """Form by a codec of a tensor less its centres, and the centres."""

    centres: Centres
    left: Packed
    codec: Codec

    @property
    def nbytes(self) -> int:
        """Return the bytes of the codec's form and of the centres."""
        return self.left.nbytes + self.centres.nbytes

    def to_bytes(self) -> bytes:
        """Raise UserError: centres are in no stream."""
        raise UserError("a tensor with centres beside it has no bitstream: compress it with the codec itself")

    def decompress(self, backend: str | Backend = "torch") -> Tensor:
        """Return the reconstructed tensor, computed by the codec's own backend."""
        return self.centres.put_back(self.codec.decompress(self.left))


def compress_centred(x: Tensor, codec: Codec) -> Packed:
    """Compress contiguous ``x`` with ``codec``, less its centres if the codec is :attr:`Codec.centred`.

    Raises UnfitValuesError for float16 values so near the format's end that they would come back infinite.
    """
    return complete_centred(x, codec, codec.compress_near_zero(x) if codec.centred else None)


def complete_centred(x: Tensor, codec: Codec, at_once: Packed | None) -> Packed:
    """Return :func:`compress_centred` of ``x``, which is ``at_once`` unless that is None."""
    centres = Centres.of(x) if at_once is None and codec.centred else None
    if centres is not None:  # which limit what comes back
        return CentredForm(centres, codec.compress(centres.taken_off(x)), codec)
    packed = codec.compress(x) if at_once is None else at_once
    if x.dtype == torch.float16 and not (codec.lossless or codec.signs_only):
        _check_end(x, packed, codec)
    return packed


def _check_end(x: Tensor, packed: Packed, codec: Codec) -> None:
    """Raise UnfitValuesError if the reconstruction of ``x``, float16, has infinite values."""
    most = float(torch.stack(torch.aminmax(x)).abs().amax())
    if most > _NEAR_END and not bool(codec.decompress(packed).isfinite().all()):
        raise UnfitValuesError(
            f"values up to {most:g} are within a step of codec {codec.name} from the end of float16: use bfloat16, or more bits"
        )


def decompress_centred(packed: Packed, codec: Codec) -> Tensor:
    """Return the reconstructed tensor of a result of :func:`compress_centred`."""
    return packed.decompress() if isinstance(packed, CentredForm) else codec.decompress(packed)


def _far(distance: Tensor, square: Tensor) -> Tensor:
    """Return where a squared distance from zero is more than FAR**2 times the rest of a mean square."""
    return distance > FAR**2 * (square - distance)


def _apart(means: Tensor, square: Tensor) -> Tensor:
    """Return the channels whose maps, with means (n, channels), are far from zero even after subtracting the channel's mean."""
    within, left = square - means.square().mean(0), square - means.mean(0).square()
    return _far(left - within, left) & (left > _NOISE * square)


def _moments(maps: Tensor, axis: int) -> tuple[Tensor, Tensor]:
    """Return sums and sums of squares of (n, channels, values) along axis 2, or 0, float64 (n or 1, channels)."""
    rows = maps.flatten(0, 1) if axis else maps.flatten(1)
    values = max(_PIECE, piece_values(rows.numel(), rows.device))
    if rows.numel() <= values:
        sums, squares = _sums(rows, axis // 2)
        return sums.view(-1, maps.shape[1]), squares.view(-1, maps.shape[1])
    found = [_sums(piece, axis // 2) for piece in torch.split(rows, max(1, values // rows.shape[1]))]
    sums, squares = (torch.cat(parts) if axis else torch.stack(parts).sum(0) for parts in zip(*found, strict=True))
    return sums.view(-1, maps.shape[1]), squares.view(-1, maps.shape[1])


def _sums(piece: Tensor, axis: int) -> tuple[Tensor, Tensor]:
    """Return sums and sums of squares of a matrix along an axis, in float32 or, where squares leave its range, in float64."""
    values = piece.to(torch.float32)
    sums, squares = values.sum(axis), _squares(values, axis)
    if not _are_held(sums, squares):
        values = piece.to(torch.float64)
        sums, squares = values.sum(axis), _squares(values, axis)
    return sums.to(torch.float64), squares


def _are_held(sums: Tensor, squares: Tensor) -> bool:
    """Return whether float32 holds all sums of squares: none is beyond its range, and each zero is one of zeros alone."""
    least, most = torch.stack(torch.aminmax(squares)).tolist()
    if least >= LEAST_SQUARE:
        return bool(most <= MOST_SQUARE)
    held = (squares >= LEAST_SQUARE) & (squares <= MOST_SQUARE) | ((squares == 0) & (sums == 0))
    return bool(held.all())


def _squares(values: Tensor, axis: int) -> Tensor:
    """Return sums of squares along an axis; torch's norm needs no temporary tensor but is ten times as slow for columns."""
    if axis == 0:
        return values.square().sum(0).to(torch.float64)
    norms: Tensor = torch.linalg.vector_norm(values, dim=1)
    return norms.to(torch.float64).square()
