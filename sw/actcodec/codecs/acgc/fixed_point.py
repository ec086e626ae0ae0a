"""AC-GC's quantiser with the paper's own widths: fixed point of 1 to 16 bits, as few as an error bound allows (AutoQuant).

Of a channel, or of the whole tensor where one error is given for it, the greatest magnitude is 1 / scale, and an error of dx
needs ``ceil(-log2(dx) - log2(scale) - 1)`` bits, and one more for the sign where there are negative values: then a step is at
most ``2 * dx``. Rounding is stochastic, so that a value's error has mean zero and a root mean square of at most dx.

What the published code does wrong is not repeated: a sign is a bit of the width that is counted and used, the greatest positive
value keeps its code (two's complement has none for 2**(bits - 1) steps, which costs a bit where exactly that many are needed),
and decoding multiplies by the step that the codes were computed with.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import torch
from cdu_spec.bitstream import Mode
from cdu_spec.geometry import LANES
from cdu_tools.errors import UserError
from torch import Tensor

from actcodec.backends.backend import Backend
from actcodec.codecs.acgc.error_bounded import SAFE_STEP, ErrorBoundedCodec, checked_error
from actcodec.codecs.codec import check_finite, check_input
from actcodec.codecs.compressed import Packed
from actcodec.codecs.rows import Piece, Rows
from actcodec.codecs.tensor_seeds import TensorSeeds
from actcodec.golden.codes import pack_tight, unpack_part
from actcodec.golden.movement import select
from actcodec.golden.random_bits import stochastically_rounded_

#: The paper's greatest width.
MOST_BITS = 16
#: Keeps the random numbers apart from those of the other codecs.
_SALT = len(Mode) + 3
_SIGNED = 128
_BYTE, _LOWEST = 8, 255


@dataclass(frozen=True, eq=False)
class FixedPointForm:
    """A tensor of whole numbers of steps. Codes stand channel by channel, those of one width together, without gaps."""

    shape: tuple[int, ...]
    dtype: torch.dtype
    steps: Tensor  #: float32 (1,) or (C,)
    widths: Tensor  #: uint8 like steps: bits per code, 1 to 16; 128 more where codes have a sign
    mask: Tensor  #: uint8 (ceil(values / 8),): which codes are not zero; empty in acgc-quant, which keeps all
    codes: Tensor  #: uint8 (bytes,)

    @property
    def nbytes(self) -> int:
        """Bytes of codes, mask, steps and widths (the paper's account: shape and format are not counted)."""
        return sum(part.numel() * part.element_size() for part in (self.steps, self.widths, self.mask, self.codes))

    @property
    def bits(self) -> Tensor:
        """Bits per code, int64 (1,) or (C,)."""
        return (self.widths & (_SIGNED - 1)).to(torch.int64)

    def to_bytes(self) -> bytes:
        """Raises UserError: codes of any width are not a stream."""
        raise UserError("codes of any width have no bitstream: use autoquant or autoquantz")

    def decompress(self, backend: str | Backend = "torch") -> Tensor:
        """The reconstructed tensor."""
        limit, rows = torch.finfo(self.dtype), Rows(self.shape, len(self.steps))
        counts = torch.full((rows.count,), 0 if self.mask.numel() else rows.length, device=self.codes.device)
        if self.mask.numel():
            for piece in rows.pieces(self.codes.device):
                counts[piece[0]] += self._present(rows, piece).sum(1)
        codes = self._codes_by_width(counts)
        rebuilt = torch.empty(self.shape, dtype=self.dtype, device=self.codes.device)
        for piece in rows.pieces(rebuilt.device):
            whole = self._whole_steps(self._present(rows, piece), piece[0], codes)
            values = (whole.to(torch.float64) * self.steps[piece[0], None].to(torch.float64)).to(torch.float32)
            rows.put(rebuilt, piece, values.clamp_(limit.min, limit.max).to(self.dtype))
        return rebuilt

    def _present(self, rows: Rows, piece: Piece) -> Tensor:
        """Whether values of a piece have a code, boolean (rows, values)."""
        shape = tuple(extent.stop - extent.start for extent in piece)
        if not self.mask.numel():
            return torch.ones(shape, dtype=torch.bool, device=self.codes.device)
        first = rows.first(piece)
        return unpack_part(self.mask, 1, slice(first, first + prod(shape))).view(torch.bool).view(shape)

    def _codes_by_width(self, counts: Tensor) -> dict[int, _Codes]:
        """Those of each width; ``counts`` says how many codes each row has."""
        found, first = {}, 0
        for width in _occurring(self.bits):
            count = int(counts[self.bits == width].sum())
            after = first + _packed_bytes(count, width)
            found[width] = _Codes(self.codes[first:after], width, count)
            first = after
        return found

    def _whole_steps(self, present: Tensor, rows: slice, codes: dict[int, _Codes]) -> Tensor:
        """The next values of some rows in steps, int32 (rows, values), where ``present`` says that there is a code for them."""
        bits = self.bits[rows]
        whole = torch.zeros(present.shape, dtype=torch.int32, device=bits.device)
        for width in _occurring(bits):
            chosen = present & (bits == width)[:, None]
            whole[chosen] = codes[width].take(int(chosen.sum()))
        half, range_ = (torch.exp2(power).to(torch.int32)[:, None] for power in (bits - 1.0, bits.to(torch.float64)))
        signed = (self.widths[rows] >= _SIGNED)[:, None]
        return whole.sub_(torch.where(signed & (whole >= half), range_, torch.zeros_like(range_)))


class _Codes:
    """Codes of one width, taken in turn."""

    def __init__(self, packed: Tensor, width: int, count: int) -> None:
        split = -(-count * min(width, _BYTE) // LANES)
        self._low, self._high = packed[:split], packed[split:]
        self._width, self._first = width, 0

    def take(self, count: int) -> Tensor:
        """The next ones, int32 (count,)."""
        here = slice(self._first, self._first + count)
        self._first = here.stop
        codes = unpack_part(self._low, min(self._width, _BYTE), here).to(torch.int32)
        if self._width > _BYTE:
            codes |= unpack_part(self._high, self._width - _BYTE, here).to(torch.int32) << _BYTE
        return codes


@dataclass
class AcgcQuantCodec(ErrorBoundedCodec):
    """``acgc-quant``: codes of 1 to 16 bits with a step for a channel or a tensor, unbiased (AC-GC, AutoQuant). Any shape.

    :meth:`compress_within` has as few bits as the error allows, for each channel (axis 1) where errors are given for channels;
    more than 16 would be needed: 16. Steps are as fine as the bits allow.

    Parameters
    ----------
    bits
        Of :meth:`compress`, which knows no error, in all channels; 1 to 16. One bit has no code for what is positive where
        there are negative values.
    seed
        Of the random numbers, 0 to 2**32 - 1.
    """

    bits: int = 8
    seed: int = 0

    name = "acgc-quant"
    independent_errors = True
    _drops_zeros = False

    def __post_init__(self) -> None:
        if isinstance(self.bits, bool) or not isinstance(self.bits, int) or not 1 <= self.bits <= MOST_BITS:
            raise UserError(f"bits = {self.bits!r} is not allowed: use 1 to {MOST_BITS}")
        self._seeds = TensorSeeds(self.seed, _SALT)

    def restart(self, seed: int) -> None:
        """See :class:`Codec`."""
        self._seeds.restart(seed)

    def decompress(self, compressed: Packed) -> Tensor:
        """See :class:`Codec`."""
        return compressed.decompress()

    def compress(self, x: Tensor) -> FixedPointForm:
        """See :class:`Codec`: with the same bits everywhere. Every call draws other random numbers."""
        x = _checked(x)
        above, below = _reach(x, x.shape[1] if x.ndim > 1 else 1)
        bits = torch.full_like(above, self.bits)
        finest = _finest(above, below, bits)
        return self._form(x, below, bits, torch.where(finest > 0, finest, 1.0))

    def compress_within(self, x: Tensor, error: Tensor) -> FixedPointForm:
        """See :class:`ErrorBoundedCodec`. Every call draws other random numbers."""
        check_input(x)
        step = SAFE_STEP * checked_error(x, error).to(torch.float64)
        above, below = _reach(_checked(x), len(step))
        bits = _bits(above / step, below / step).clamp(1, MOST_BITS)
        finest = _finest(above, below, bits)
        # Wider steps than necessary make more zeros, where these are worth something.
        wider = torch.maximum(step, finest) if self._drops_zeros else torch.where(finest > 0, finest, step)
        return self._form(x.detach(), below, bits, wider)

    def _form(self, x: Tensor, below: Tensor, bits: Tensor, steps: Tensor) -> FixedPointForm:
        # Rounded up, so that the greatest value keeps its code.
        stored = (steps * (1 + 2.0**-23)).to(torch.float32).clamp_min(torch.finfo(torch.float32).tiny)
        signed, widths = below > 0, bits.to(torch.uint8)
        parts, mask = _packed(self._codes(x, stored, bits, signed), widths, with_zeros=not self._drops_zeros)
        return FixedPointForm(
            tuple(x.shape), x.dtype, stored, widths + _SIGNED * signed.to(torch.uint8), mask, torch.cat(parts)
        )

    def _codes(self, x: Tensor, steps: Tensor, bits: Tensor, signed: Tensor) -> Tensor:
        """Codes in planes of their lower 8 bits and, where there are more, of what is above, uint8 (planes, rows, values)."""
        seed = self._seeds.next()
        least, greatest = (end[:, None] for end in _ends(bits, signed))
        rows = Rows(tuple(x.shape), len(bits))
        planes = torch.empty(2 if int(bits.max()) > _BYTE else 1, rows.count, rows.length, dtype=torch.uint8, device=x.device)
        for piece in rows.pieces(x.device):
            values = rows.taken(x, piece).to(torch.float64).div_(steps[piece[0], None].to(torch.float64))
            rounded = stochastically_rounded_(values, seed, rows.first(piece))
            codes = torch.minimum(torch.maximum(rounded, -least[piece[0]]), greatest[piece[0]]).to(torch.int32)
            codes &= torch.exp2(bits[piece[0], None]).to(torch.int32) - 1
            for place, plane in enumerate(planes):
                plane[piece] = codes >> _BYTE * place & _LOWEST
        return planes


@dataclass
class AcgcQuantZCodec(AcgcQuantCodec):
    """``acgc-quantz``: acgc-quant in which a zero costs one bit and other values one more (AC-GC, AutoQuantZ).

    :meth:`compress_within` has steps of twice the error, where acgc-quant may have finer ones: more values become zero.

    Parameters as for :class:`AcgcQuantCodec`.
    """

    name = "acgc-quantz"
    _drops_zeros = True


def _checked(x: Tensor) -> Tensor:
    """The values alone; UserError unless they can be compressed."""
    check_input(x)
    check_finite(x)
    return x.detach()


def _reach(x: Tensor, rows: int) -> tuple[Tensor, Tensor]:
    """How far each channel, or the whole, reaches above and below zero, float64 (rows,)."""
    axes = [axis for axis in range(x.ndim) if rows == 1 or axis != 1]
    greatest, least = (edge.view(-1).to(torch.float64) for edge in (x.amax(axes), x.amin(axes)))
    return greatest.clamp_min(0), -least.clamp_max(0)


def _bits(up: Tensor, down: Tensor) -> Tensor:
    """The least bits for so many steps above and below zero, float64 (rows,)."""
    unsigned = (up + 1).log2().ceil()
    return torch.where(down > 0, 1 + torch.maximum(unsigned, down.log2().ceil().clamp_min(0)), unsigned)


def _ends(bits: Tensor, signed: Tensor) -> tuple[Tensor, Tensor]:
    """Codes below and above zero, float64 (rows,), from float64 bits."""
    least = torch.where(signed, torch.exp2(bits - 1), 0.0)
    return least, torch.exp2(bits) - 1 - least


def _finest(above: Tensor, below: Tensor, bits: Tensor) -> Tensor:
    """The finest step with which all codes suffice; zero for rows of zeros."""
    least, greatest = _ends(bits, below > 0)
    # Where a single bit is the sign's, positive values have no code.
    return torch.maximum(below / least.clamp_min(1), torch.where(greatest > 0, above / greatest, 0.0))


def _occurring(widths: Tensor) -> list[int]:
    return sorted(set(widths.tolist()))


def _packed(planes: Tensor, widths: Tensor, *, with_zeros: bool) -> tuple[list[Tensor], Tensor]:
    """Bytes of the codes of each width, the lower 8 bits of all, then what is above; and the mask, if zeros have no code."""
    present = None if with_zeros else (planes[0] if len(planes) == 1 else planes.amax(0)) != 0
    parts = []
    for width in _occurring(widths):
        rows = slice(None) if bool((widths == width).all()) else widths == width
        for place, plane in enumerate(planes[: -(-width // _BYTE)]):
            codes = plane[rows] if present is None else select(plane[rows], present[rows])
            parts.append(pack_tight(codes.flatten(), min(width - _BYTE * place, _BYTE)))
    return parts, widths[:0] if present is None else pack_tight(present.view(torch.uint8).flatten(), 1)


def _packed_bytes(count: int, width: int) -> int:
    low = min(width, _BYTE)
    return -(-count * low // LANES) + -(-count * (width - low) // LANES)
