"""AC-GC's quantiser with the paper's own widths: fixed point of 1 to 16 bits, as few as an error bound allows (AutoQuant).

Of a channel, or of the whole tensor where one error is given for it, the greatest magnitude is 1 / scale, and an error of dx
needs ``ceil(-log2(dx) - log2(scale) - 1)`` bits, and one more for the sign where there are negative values: then a step is at
most ``2 * dx``. Rounding is stochastic, so that a value's error has mean zero and a root mean square of at most dx.

What the published code does wrong is not repeated: a sign is a bit of the width that is counted and used, the greatest positive
value keeps its code (two's complement has none for 2**(bits - 1) steps, which costs a bit where exactly that many are needed),
and decoding multiplies by the step that the codes were computed with.
"""

from __future__ import annotations

from collections.abc import Sequence
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
from actcodec.codecs.random_codec import RandomCodec
from actcodec.codecs.tensor_seeds import TensorSeeds
from actcodec.golden.codes import pack_tight, unpack_tight
from actcodec.golden.random_bits import stochastically_rounded_

#: The paper's greatest width.
MOST_BITS = 16
#: Keeps the random numbers apart from those of the other codecs.
_SALT = len(Mode) + 3
_SIGNED = 128
_BYTE = 8


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
        rows = (len(self.steps), prod(self.shape) // len(self.steps))
        present = None
        if self.mask.numel():
            present = unpack_tight(self.mask, 1, prod(rows)).view(rows).to(torch.bool)
        codes = torch.zeros(rows, dtype=torch.int32, device=self.codes.device)
        bits, first = self.bits, 0
        for width in _occurring(bits):
            chosen = (bits == width)[:, None].expand(rows)
            if present is not None:
                chosen = chosen & present
            count = int(chosen.sum())
            after = first + _packed_bytes(count, width)
            codes[chosen] = _unpacked(self.codes[first:after], width, count)
            first = after
        half, whole = (torch.exp2(power).to(torch.int32)[:, None] for power in (bits - 1.0, bits.to(torch.float64)))
        signed = (self.widths >= _SIGNED)[:, None]
        codes -= torch.where(signed & (codes >= half), whole, torch.zeros_like(whole))
        values = (codes.to(torch.float64) * self.steps.to(torch.float64)[:, None]).to(torch.float32)
        limit = torch.finfo(self.dtype)
        return _from_rows(values.clamp_(limit.min, limit.max).to(self.dtype), self.shape)


@dataclass
class AcgcQuantCodec(RandomCodec, ErrorBoundedCodec):
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

    def decompress(self, compressed: Packed) -> Tensor:
        """See :class:`Codec`."""
        return compressed.decompress()

    def compress(self, x: Tensor) -> FixedPointForm:
        """See :class:`Codec`: with the same bits everywhere. Every call draws other random numbers."""
        rows = self._rows(x, x.shape[1] if isinstance(x, Tensor) and x.ndim > 1 else 1)
        above, below = _reach(rows)
        bits = torch.full_like(above, self.bits)
        finest = _finest(above, below, bits)
        return self._form(x, rows, below, bits, torch.where(finest > 0, finest, 1.0))

    def compress_within(self, x: Tensor, error: Tensor) -> FixedPointForm:
        """See :class:`ErrorBoundedCodec`. Every call draws other random numbers."""
        check_input(x)
        step = SAFE_STEP * checked_error(x, error).to(torch.float64)
        rows = self._rows(x, len(step))
        above, below = _reach(rows)
        bits = _bits(above / step, below / step).clamp(1, MOST_BITS)
        finest = _finest(above, below, bits)
        # Wider steps than necessary make more zeros, where these are worth something.
        wider = torch.maximum(step, finest) if self._drops_zeros else torch.where(finest > 0, finest, step)
        return self._form(x, rows, below, bits, wider)

    def _rows(self, x: Tensor, count: int) -> Tensor:
        """The values, float64 (count, values each); UserError unless they can be compressed."""
        check_input(x)
        check_finite(x)
        by_channel = x.detach().transpose(0, 1) if x.ndim > 1 and count > 1 else x.detach()
        return by_channel.reshape(count, -1).to(torch.float64)

    def _form(self, x: Tensor, rows: Tensor, below: Tensor, bits: Tensor, steps: Tensor) -> FixedPointForm:
        # Rounded up, so that the greatest value keeps its code.
        stored = (steps * (1 + 2.0**-23)).to(torch.float32).clamp_min(torch.finfo(torch.float32).tiny)
        signed = below > 0
        codes = stochastically_rounded_(rows / stored.to(torch.float64)[:, None], self._seeds.next())
        least, greatest = _ends(bits, signed)
        codes = torch.minimum(torch.maximum(codes, -least[:, None]), greatest[:, None]).to(torch.int32)
        present = codes != 0
        widths = bits.to(torch.uint8)
        packed = []
        for width in _occurring(widths):
            chosen = widths == width
            group = codes[chosen]
            kept = group[present[chosen]] if self._drops_zeros else group.flatten()
            packed.append(_packed(kept & ((1 << width) - 1), width))
        mask = pack_tight(present.flatten().to(torch.uint8), 1) if self._drops_zeros else widths[:0]
        widths = widths + _SIGNED * signed.to(torch.uint8)
        return FixedPointForm(tuple(x.shape), x.dtype, stored, widths, mask, torch.cat(packed))


@dataclass
class AcgcQuantZCodec(AcgcQuantCodec):
    """``acgc-quantz``: acgc-quant in which a zero costs one bit and other values one more (AC-GC, AutoQuantZ).

    :meth:`compress_within` has steps of twice the error, where acgc-quant may have finer ones: more values become zero.

    Parameters as for :class:`AcgcQuantCodec`.
    """

    name = "acgc-quantz"
    _drops_zeros = True


def _from_rows(rows: Tensor, shape: Sequence[int]) -> Tensor:
    """The inverse of what ``_rows`` does."""
    if len(rows) == 1:
        return rows.reshape(tuple(shape))
    return rows.view(shape[1], shape[0], *shape[2:]).transpose(0, 1).contiguous()


def _reach(rows: Tensor) -> tuple[Tensor, Tensor]:
    """How far each row reaches above and below zero, float64 (rows,)."""
    return rows.amax(1).clamp_min(0), -rows.amin(1).clamp_max(0)


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


def _packed(codes: Tensor, width: int) -> Tensor:
    """int32 (n,), each below 2**width, to bytes: the lower 8 bits of all, then what is above."""
    parts = [pack_tight((codes & 255).to(torch.uint8), min(width, _BYTE))]
    if width > _BYTE:
        parts.append(pack_tight((codes >> _BYTE).to(torch.uint8), width - _BYTE))
    return torch.cat(parts)


def _unpacked(packed: Tensor, width: int, count: int) -> Tensor:
    """The inverse of :func:`_packed`."""
    low = min(width, _BYTE)
    split = -(-count * low // LANES)
    codes = unpack_tight(packed[:split], low, count).to(torch.int32)
    if width > _BYTE:
        codes |= unpack_tight(packed[split:], width - _BYTE, count).to(torch.int32) << _BYTE
    return codes


def _packed_bytes(count: int, width: int) -> int:
    low = min(width, _BYTE)
    return -(-count * low // LANES) + -(-count * (width - low) // LANES)
