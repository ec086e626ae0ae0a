"""Copies of tokens in components without correlation: codec ``feature-klt``, for tensors with many tokens.

Features of a token are correlated, the more the longer a network was trained. A Karhunen-Loeve transform, made of every 16th
token of the same tensor, turns them into components, most of which are smaller than a step. The transform is part of the
copy, cut to the components that pay; a tensor with too few tokens for it has the copy of codec ``feature-coded``.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from cdu_tools.errors import UserError
from torch import Tensor

from actcodec.backends.backend import Backend
from actcodec.codecs.actnn.float_forms import no_bitstream
from actcodec.codecs.affine.affine_scales import BLPA_REACH
from actcodec.codecs.blpa.feature_coded import TOKEN, FeatureCodedCodec, FeatureForm
from actcodec.codecs.codec import check_finite, check_input
from actcodec.codecs.compressed import Packed
from actcodec.golden import integer_coder
from actcodec.golden.floating import karhunen, predicted
from actcodec.golden.predicted_integers import Coded, decode, encode
from actcodec.golden.shapes import header_bytes

#: Least number of tokens for each feature. A transform of all features costs as much as they do in a quarter of the bits.
LEAST_TOKENS = 4
#: Part of a transform's bytes by estimate that has to be saved, because an estimate errs.
_MARGIN = 0.95
#: A magnitude is rounded up from this part of a step on; codes stand for so much more than their number of steps.
ROUNDED_UP, CENTROID = 0.6, 0.05
#: Most bits with which directions are bfloat16: their rounding is below a fifth of a step of the greatest component.
_BITS_OF_SHORT_DIRECTIONS = 8
#: Parts of an octave in which scales of tokens are counted.
_OCTAVE = 8
#: Range of squares of deviations that float32 holds in full.
_LEAST_SQUARE, _MOST_SQUARE = 2.0**-100, 2.0**100
_HEADS_RANK = 4
#: Rows whose squares are added at once.
_PIECE_ROWS = 4096


@dataclass(frozen=True, eq=False)
class KltForm:
    """Copy of the tokens of a tensor: components in steps, the directions of these, and what was subtracted."""

    shape: tuple[int, ...]
    dtype: torch.dtype
    heads: bool  #: axis 1 counts heads, whose features are those of one token
    mean: Tensor  #: float32 (features,)
    directions: Tensor  #: bfloat16 or float32 (features, components), in units of the values
    step: Tensor  #: float32 (1,), positive
    coded: Coded  #: multiples of the step, component by component
    scales: Coded | None  #: binary logarithms of the tokens' scales in eighths, if the tokens have scales
    backend: Backend  #: computes the values

    @property
    def nbytes(self) -> int:
        """Return the bytes of a header, the shape, all parameters and codes."""
        parts = (self.mean, self.directions, self.step)
        scales = 0 if self.scales is None else self.scales.nbytes
        sizes = sum(part.numel() * part.element_size() for part in parts)
        return header_bytes(self.shape) + sizes + self.coded.nbytes + scales

    def to_bytes(self) -> bytes:
        """Raise UserError: a floating-point form is not a stream."""
        raise no_bitstream()

    def decompress(self, backend: str | Backend = "torch") -> Tensor:
        """Return the values in shape and dtype of the original, limited to the dtype's range, by the codec's own backend."""
        features, rank = self.directions.shape
        tokens = _tokens(self.shape, features)
        found = predicted.Predicted(0, self.coded, self.mean.new_zeros(0, dtype=torch.int64))
        rows = self.mean.expand(tokens, features)
        if rank:
            steps = self.backend.run(predicted.products, found, self.step, (rank, 1, tokens), torch.float32)
            values = _middles(steps[:, 0], self.step)
            rows = torch.addmm(self.mean, values.t(), self.directions.float().t())
        if self.scales is not None:
            rows = rows * _scales(next(decode(self.scales, (tokens,), 0))[1])
        limits = torch.finfo(self.dtype)
        return _from_rows(rows.clamp(limits.min, limits.max).to(self.dtype), self.shape, self.heads)


@dataclass
class FeatureKltCodec(FeatureCodedCodec):
    """Codec ``feature-klt``: ``feature-coded`` of components without correlation, where that takes fewer bytes.

    Takes any shape. Features are divided by their deviations, and all components have steps of ``6 / 2**bits``. There are
    components for tensors with negative values and at least :data:`LEAST_TOKENS` tokens for each feature, if by an estimate
    from every 16th token they save a twentieth of the bytes, and if what is cut is at most the error that the steps would
    leave. All other tensors have the copy of codec ``feature-coded``, with exact signs; components do not keep signs.

    Parameters
    ----------
    bits, backend, coder
        As for :class:`~actcodec.codecs.blpa.blpa_coded.BlpaCodedCodec`.
    steps_of
        As for :class:`~actcodec.codecs.blpa.feature_coded.FeatureCodedCodec`; with ``token``, each token is divided by its own
        deviation, and features are divided by one deviation, the root mean square of theirs.
    heads
        True if axis 1 of a tensor of rank 4 counts the heads of an attention, whose features together are those of a token.
    """

    heads: bool = False

    name = "feature-klt"

    def __post_init__(self) -> None:
        if not isinstance(self.heads, bool):
            raise UserError(f"heads = {self.heads!r} is not allowed: use True or False")
        super().__post_init__()

    def compress(self, x: Tensor) -> FeatureForm | KltForm:  # type: ignore[override]
        """Implement :class:`Codec`."""
        check_input(x)
        check_finite(x, self.arithmetic)
        return self._components(x.detach()) or super().compress(x)

    def decompress(self, compressed: Packed) -> Tensor:
        """Implement :class:`Codec`."""
        return compressed.decompress(self.arithmetic)

    def _components(self, x: Tensor) -> KltForm | None:
        """Return the copy in components; None where the rules are against it."""
        heads = self.heads and x.ndim == _HEADS_RANK
        features = x.shape[-1] * (x.shape[1] if heads else 1)
        tokens = _tokens(x.shape, features)
        if tokens < LEAST_TOKENS * features or not bool(x.amin() < 0):
            return None
        rows = _rows(x, heads).to(torch.float32)
        numbers = None
        if self.steps_of == TOKEN:
            numbers = _scale_numbers(rows)
            if numbers is None:
                return None
            rows = rows / _scales(numbers)
        mean = rows.mean(0)
        left = rows - mean  # in place from here on, as the copy is as large as the tensor
        variance = torch.stack([piece.square().sum(0) for piece in left.split(_PIECE_ROWS)]).sum(0) / tokens
        constant = rows.amin(0) == rows.amax(0)
        if not bool((((variance >= _LEAST_SQUARE) & (variance <= _MOST_SQUARE)) | constant).all()):
            return None
        if self.steps_of == TOKEN:
            variance = variance.mean().expand(features)
        deviation = torch.where(constant, 1.0, variance.sqrt())
        left /= deviation
        left[:, constant] = 0
        mean = torch.where(constant, rows[0], mean)
        step = 2 * BLPA_REACH / 2**self.bits
        short = self.bits <= _BITS_OF_SHORT_DIRECTIONS
        dtype = torch.bfloat16 if short else torch.float32
        sample = karhunen.sampled(left)
        variances, directions = karhunen.components(sample)
        rank = karhunen.rank_that_pays(variances, step, tokens, features * torch.finfo(dtype).bits)
        turn = directions[:, :rank].to(torch.float32)
        if not self._pays(sample, turn, step, tokens, rank * features * torch.finfo(dtype).bits):
            return None
        found = left @ turn
        cut = _sum_of_squares(left) - _sum_of_squares(found)
        del left
        if cut > tokens * int((~constant).sum()) * step**2 / 12:
            return None
        steps = torch.tensor([step], dtype=torch.float32, device=x.device)
        coded = self._coded(steps.new_zeros(0, dtype=torch.int32))
        if rank:
            result = self.arithmetic.run(
                predicted.multiples, _rounded_up(found, step).t().contiguous()[:, None], steps, 0, self.coder
            )
            if result.places.numel():
                return None
            coded = result.coded
        kept = (turn * deviation[:, None]).to(dtype).contiguous()
        scales = None if numbers is None else self._coded(numbers)
        return KltForm(tuple(x.shape), x.dtype, heads, mean, kept, steps, coded, scales, self.arithmetic)

    def _coded(self, numbers: Tensor) -> Coded:
        """Return whole numbers, int32 (n,), by the codec's coder."""
        return encode(numbers, lambda part: part, 0, self.coder)[1]

    def _pays(self, sample: Tensor, turn: Tensor, step: float, tokens: int, direction_bits: int) -> bool:
        """Return whether components of a sample, with their directions, take fewer bits than its features by an estimate.

        A difference of the squared errors counts as the bits that steps of another width would take for it, with the weight of
        what is cut as in :func:`~actcodec.golden.floating.karhunen.rank_that_pays`.
        """
        found = sample @ turn
        numbers = (_rounded_up(found, step) / step).round().to(torch.int32)
        cut = float((sample.square().sum() - found.square().sum()) / step**2)
        error = (
            karhunen.WEIGHT_OF_CUT * cut + float((_middles(numbers, 1.0) - found / step).square().sum()) - sample.numel() / 12
        )
        coded = integer_coder.estimated_bits(numbers.t().contiguous()) if numbers.numel() else 0.0
        bits = direction_bits * len(sample) / tokens + coded + error / karhunen.SQUARE_OF_A_BIT
        return bits <= _MARGIN * integer_coder.estimated_bits((sample / step).ceil().to(torch.int32))


def _sum_of_squares(rows: Tensor) -> float:
    """Return the sum in float64, by pieces so that no copy of all values is made."""
    return sum(float(piece.square().sum(dtype=torch.float64)) for piece in rows.split(_PIECE_ROWS))


def _rounded_up(found: Tensor, step: float) -> Tensor:
    """Return values whose nearest multiples of the step are those of values that :data:`ROUNDED_UP` rounds."""
    return found.sign() * (found.abs() - (ROUNDED_UP - 0.5) * step).clamp_min_(0)


def _middles(multiples: Tensor, step: Tensor | float) -> Tensor:
    """Return what multiples of a step stand for."""
    return multiples + multiples.sign() * (CENTROID * step)


def _tokens(shape: tuple[int, ...], features: int) -> int:
    count = 1
    for extent in shape:
        count *= extent
    return count // features


def _rows(x: Tensor, heads: bool) -> Tensor:
    """Return the tokens of a tensor, (tokens, features)."""
    if not heads:
        return x.reshape(-1, x.shape[-1])
    return x.transpose(1, 2).reshape(-1, x.shape[1] * x.shape[3])


def _from_rows(rows: Tensor, shape: tuple[int, ...], heads: bool) -> Tensor:
    """Return the tensor of a shape whose tokens are rows, contiguous."""
    if not heads:
        return rows.reshape(shape)
    samples, count, places, features = shape
    return rows.view(samples, places, count, features).transpose(1, 2).contiguous()


def _scale_numbers(rows: Tensor) -> Tensor | None:
    """Return the binary logarithms of the tokens' deviations in eighths, int32 (tokens,); None beyond float32's squares.

    Tokens of zeros, whose reconstructions are not exact, have the least deviation of all.
    """
    mean = rows.mean(1)
    variance = (rows - mean[:, None]).square_().mean(1)
    square = torch.maximum(variance, mean.square() / 2**16)
    if not bool((((square >= _LEAST_SQUARE) & (square <= _MOST_SQUARE)) | (rows.abs().amax(1) == 0)).all()):
        return None
    least = torch.where(square > 0, square, _MOST_SQUARE).amin()
    return (torch.where(square > 0, square, least).log2() * (_OCTAVE / 2)).round().to(torch.int32)


def _scales(numbers: Tensor) -> Tensor:
    """Return the scales of tokens, float32 (tokens, 1)."""
    return torch.exp2(numbers.to(torch.float32) / _OCTAVE)[:, None]
