"""Floating-point formats of 16, 10 and 8 bits: DPR, the delayed precision reduction of GIST (Jain et al., ISCA 2018).

A code is sign, exponent, fraction, highest bit first. Rounding is to nearest, ties to even codes; numbers beyond the greatest
one become the greatest, never infinity; below the smallest normal number steps stay equal down to zero (subnormal numbers).

======  ====================  ========  ================  =================  ============================================
format  exponent + fraction   greatest  smallest normal   smallest           is
======  ====================  ========  ================  =================  ============================================
fp16    5 + 10                65504     2**-14            2**-24             IEEE 754 binary16
fp10    5 + 4                 63488     2**-14            2**-18             binary16 with fewer bits of fraction
fp8     4 + 3                 448       2**-6             2**-9              E4M3 of the Open Compute Project (OFP8, 2023)
======  ====================  ========  ================  =================  ============================================

fp16 and fp10 never use the greatest exponent, fp8 never the one code above 448; the standards use them for infinity and NaN.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from actcodec.golden.checks import require
from actcodec.golden.pieces import CHUNK_VALUES

_SINGLE_FRACTION, _SINGLE_BIAS, _SINGLE_INFINITY = 23, 127, 0x7F800000


@dataclass(frozen=True)
class Minifloat:
    """Format of a sign, ``exponent_bits`` and ``fraction_bits``; ``greatest`` is the code of its greatest number."""

    exponent_bits: int
    fraction_bits: int
    greatest: int

    @property
    def bits(self) -> int:
        """Return the bits of a code."""
        return 1 + self.exponent_bits + self.fraction_bits

    @property
    def bias(self) -> int:
        """Return the bias of a stored exponent."""
        return (1 << (self.exponent_bits - 1)) - 1

    @property
    def magnitudes(self) -> int:
        """Return the number of codes without a sign; the bits below this power of two are exponent and fraction."""
        return 1 << (self.bits - 1)

    @property
    def _step(self) -> float:
        """Return the smallest positive number."""
        return 2.0 ** (1 - self.bias - self.fraction_bits)

    def encode(self, values: Tensor) -> Tensor:
        """Encode float32 (...) to int32 (...). NaN becomes 0, infinity the greatest number; -0.0 keeps its sign."""
        require("values", values, (torch.float32,))
        return _by_pieces(self._encode, values, torch.int32)

    def decode(self, codes: Tensor) -> Tensor:
        """Decode codes of :meth:`encode`, int32 (...), to float32 (...), exactly."""
        require("codes", codes, (torch.int32,))
        return _by_pieces(self._decode, codes, torch.float32)

    def _encode(self, values: Tensor) -> Tensor:
        patterns = values.view(torch.int32)
        magnitudes = patterns & 0x7FFFFFFF
        dropped = _SINGLE_FRACTION - self.fraction_bits
        # Adds half a step less one, and one more where the code below is odd; a carry increments the exponent, as required.
        normal = (magnitudes >> dropped & 1) + magnitudes + ((1 << (dropped - 1)) - 1) >> dropped
        normal = (normal - (_SINGLE_BIAS - self.bias << self.fraction_bits)).clamp_max(self.greatest)
        # The sum with this number has the format's smallest step as its last bit: the adder rounds.
        adder = torch.full((), self._step * 2.0**_SINGLE_FRACTION, device=values.device)
        limited = magnitudes.clamp_max(_SINGLE_BIAS - self.bias + 1 << _SINGLE_FRACTION).view(torch.float32)
        subnormal = (limited + adder).view(torch.int32) - adder.view(torch.int32)
        # Subnormal codes are the greater ones up to the smallest normal number, where they stop. (`where` would be slow.)
        codes = torch.maximum(normal, subnormal)
        codes &= (magnitudes - (_SINGLE_INFINITY + 1)) >> 31  # 0 for NaN, else all ones
        return codes | (patterns >> (32 - self.bits) & self.magnitudes)

    def _decode(self, codes: Tensor) -> Tensor:
        magnitudes = codes & (self.magnitudes - 1)
        normal = (magnitudes << (_SINGLE_FRACTION - self.fraction_bits)) + (_SINGLE_BIAS - self.bias << _SINGLE_FRACTION)
        subnormal = (magnitudes.to(torch.float32) * self._step).view(torch.int32)
        is_subnormal = (magnitudes - (1 << self.fraction_bits)) >> 31  # all ones, else 0
        patterns = normal ^ ((normal ^ subnormal) & is_subnormal)
        return (patterns | (codes & self.magnitudes) << (32 - self.bits)).view(torch.float32)


def _by_pieces(function: Callable[[Tensor], Tensor], source: Tensor, dtype: torch.dtype) -> Tensor:
    """Apply a function to contiguous pieces that fit a cache; on devices other than the CPU, to the whole."""
    target = torch.empty(source.shape, dtype=dtype, device=source.device)
    size = CHUNK_VALUES if source.device.type == "cpu" else max(source.numel(), 1)
    for piece, result in zip(torch.split(source.reshape(-1), size), torch.split(target.view(-1), size), strict=True):
        result.copy_(function(piece))
    return target


#: Formats of GIST, by name.
MINIFLOATS = {"fp16": Minifloat(5, 10, 0x7BFF), "fp10": Minifloat(5, 4, 0x1EF), "fp8": Minifloat(4, 3, 0x7E)}
