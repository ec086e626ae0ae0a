"""AC-GC's quantiser with the paper's own widths: fixed point of 1 to 16 bits, as few as an error bound allows (AutoQuant).

The greatest magnitude of a channel, or of the whole tensor if it has one error, is 1 / scale. An error of dx needs
``ceil(-log2(dx) - log2(scale) - 1)`` bits, and one more for the sign if there are negative values: then a step is at most
``2 * dx``. Rounding is stochastic, so that a value's error has mean zero and a root mean square of at most dx.

Errors of the published code are not repeated: a sign is a bit of the width, counted and used; the greatest positive value keeps
its code (two's complement has none for 2**(bits - 1) steps, which costs a bit if exactly that many are needed); and decoding
multiplies by the step that the codes were computed with.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from cdu_spec.modes import Mode
from cdu_tools.errors import UserError
from cdu_tools.numbers import is_whole
from torch import Tensor

from actcodec.backends.backend import Backend
from actcodec.backends.named import backend as backend_of
from actcodec.codecs.acgc.error_bounded import SAFE_STEP, ErrorBoundedCodec, checked_error
from actcodec.codecs.codec import check_finite, check_input
from actcodec.codecs.compressed import Packed
from actcodec.codecs.random_codec import RandomCodec
from actcodec.codecs.tensor_seeds import TensorSeeds
from actcodec.golden.channel_statistics import channel_edges
from actcodec.golden.floating import rows as floating_rows
from actcodec.golden.floating.rows import RowSteps, by_row, code_ends

#: Greatest width in the paper.
MOST_BITS = 16
#: Salt that separates the random numbers from those of the other codecs.
_SALT = len(Mode) + 3
_SIGNED = 128


@dataclass(frozen=True, eq=False)
class FixedPointForm:
    """Tensor as whole numbers of steps; codes are stored channel by channel, those of one width together, without gaps."""

    shape: tuple[int, ...]
    dtype: torch.dtype
    steps: Tensor  #: float32 (1,) or (C,)
    widths: Tensor  #: uint8 like steps: bits per code, 1 to 16; 128 more where codes have a sign
    mask: Tensor  #: uint8 (ceil(values / 8),): bits of the codes that are not zero; empty in acgc-quant, which keeps all codes
    codes: Tensor  #: uint8 (bytes,)

    @property
    def nbytes(self) -> int:
        """Return the bytes of codes, mask, steps and widths (as in the paper, without shape and format)."""
        return sum(part.numel() * part.element_size() for part in (self.steps, self.widths, self.mask, self.codes))

    @property
    def bits(self) -> Tensor:
        """Return the bits per code, int64 (1,) or (C,)."""
        return (self.widths & (_SIGNED - 1)).to(torch.int64)

    def to_bytes(self) -> bytes:
        """Raise UserError: codes of any width are not a stream."""
        raise UserError("codes of any width have no bitstream: use autoquant or autoquantz")

    def decompress(self, backend: str | Backend = "torch") -> Tensor:
        """Return the reconstructed tensor."""
        rows = RowSteps(self.steps, self.widths & (_SIGNED - 1), self.widths >= _SIGNED)
        return backend_of(backend).run(floating_rows.values, self.codes, self.mask, rows, self.shape, self.dtype)


@dataclass
class AcgcQuantCodec(RandomCodec, ErrorBoundedCodec):
    """Codec ``acgc-quant``: unbiased codes of 1 to 16 bits with a step per channel or tensor (AC-GC, AutoQuant).

    Takes any shape. :meth:`compress_within` uses as few bits as the error allows, per channel (axis 1) if errors are given per
    channel, and 16 if more would be needed. Steps are as fine as the bits allow.

    Parameters
    ----------
    bits
        Bits of :meth:`compress`, which has no error to keep, in all channels, 1 to 16. With negative values, one bit has no
        code for positive values.
    seed
        Number, 0 to 2**32 - 1, that the seeds of tensors follow from (:class:`~actcodec.codecs.tensor_seeds.TensorSeeds`).
    backend
        ``torch``, or a backend that computes the same in less time, such as ``native``.
    """

    bits: int = 8
    seed: int = 0
    backend: str | Backend = "torch"

    name = "acgc-quant"
    independent_errors = True
    _drops_zeros = False

    def __post_init__(self) -> None:
        if not is_whole(self.bits, 1, MOST_BITS):
            raise UserError(f"bits = {self.bits!r} is not allowed: use 1 to {MOST_BITS}")
        self._seeds = TensorSeeds(self.seed, _SALT)
        self._backend = backend_of(self.backend)

    def decompress(self, compressed: Packed) -> Tensor:
        """Implement :class:`Codec`."""
        return compressed.decompress(self._backend)

    def compress(self, x: Tensor) -> FixedPointForm:
        """Implement :class:`Codec` with the same bits in all channels. Every call draws new random numbers."""
        check_input(x)
        above, below = self._reach(x, x.shape[1] if x.ndim > 1 else 1)
        bits = torch.full_like(above, self.bits)
        finest = _finest(above, below, bits)
        return self._form(x, below, bits, torch.where(finest > 0, finest, 1.0))

    def compress_within(self, x: Tensor, error: Tensor) -> FixedPointForm:
        """Implement :class:`ErrorBoundedCodec`. Every call draws new random numbers."""
        check_input(x)
        step = SAFE_STEP * checked_error(x, error).to(torch.float64)
        above, below = self._reach(x, len(step))
        bits = _bits(above / step, below / step).clamp(1, MOST_BITS)
        finest = _finest(above, below, bits)
        # Codecs that drop zeros keep steps that are wider than necessary, because those make more zeros.
        wider = torch.maximum(step, finest) if self._drops_zeros else torch.where(finest > 0, finest, step)
        return self._form(x, below, bits, wider)

    def _reach(self, x: Tensor, count: int) -> tuple[Tensor, Tensor]:
        """Return how far ``count`` rows reach above and below zero, float64 (rows,); raise UserError unless x is finite."""
        check_finite(x, self._backend)
        least, greatest = self._backend.run(channel_edges, by_row(x.detach(), count))
        return greatest.clamp_min(0), -least.clamp_max(0)

    def _form(self, x: Tensor, below: Tensor, bits: Tensor, steps: Tensor) -> FixedPointForm:
        # Steps are rounded up, so that the greatest value keeps its code.
        limits = torch.finfo(torch.float32)
        stored = (steps * (1 + 2.0**-23)).to(torch.float32).clamp(limits.tiny, limits.max)
        rows = RowSteps(stored, bits.to(torch.uint8), below > 0)
        seed, drop = self._seeds.next(), self._drops_zeros
        mask, codes = self._backend.run(floating_rows.codes, x.detach(), rows, seed, drop_zeros=drop)
        widths = rows.bits + _SIGNED * rows.signed.to(torch.uint8)
        return FixedPointForm(tuple(x.shape), x.dtype, stored, widths, mask, codes)


@dataclass
class AcgcQuantZCodec(AcgcQuantCodec):
    """Codec ``acgc-quantz``: acgc-quant in which a zero costs one bit and other values one more (AC-GC, AutoQuantZ).

    :meth:`compress_within` uses steps of twice the error, even where acgc-quant would use finer ones: more values become zero.

    Parameters as for :class:`AcgcQuantCodec`.
    """

    name = "acgc-quantz"
    _drops_zeros = True


def _bits(up: Tensor, down: Tensor) -> Tensor:
    """Return the least bits for these numbers of steps above and below zero, float64 (rows,)."""
    unsigned = (up + 1).log2().ceil()
    return torch.where(down > 0, 1 + torch.maximum(unsigned, down.log2().ceil().clamp_min(0)), unsigned)


def _finest(above: Tensor, below: Tensor, bits: Tensor) -> Tensor:
    """Return the finest step with which all codes suffice; zero for rows of zeros."""
    least, greatest = code_ends(bits, below > 0)
    # A single bit that is the sign leaves no code for positive values.
    return torch.maximum(below / least.clamp_min(1), torch.where(greatest > 0, above / greatest, 0.0))
