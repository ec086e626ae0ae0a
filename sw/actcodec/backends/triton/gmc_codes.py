"""Tables of GMC for kernels, and properties of the classes of groups; :mod:`cdu_spec.gmc` defines both."""

from __future__ import annotations

from functools import lru_cache

import torch
import triton
import triton.language as tl
from cdu_spec import gmc as spec
from torch import Tensor

from actcodec.backends.triton.constants import (
    GMC_A_AFTER_ZERO,
    GMC_A_FIRST,
    GMC_B_FIRST,
    GMC_LAST_CONTEXT,
    GMC_LAST_MASK_CLASS,
    GMC_RAW_CLASS,
)
from actcodec.golden.gmc import symbols_of, words_of

#: First bit of the length in entries of tables, above the value.
_LENGTH_AT = 8
LENGTH, VALUE_MASK = tl.constexpr(_LENGTH_AT), tl.constexpr((1 << _LENGTH_AT) - 1)
_CODES = (spec.A_CODES, spec.B_CODES, spec.MASK_CODES)
#: Symbols of a row of code words of A, of B, of masks; bits of the longest word, and a mask of that many bits.
A_SYMBOLS, B_SYMBOLS, MASK_SYMBOLS = (tl.constexpr(len(codes[0])) for codes in _CODES)
A_LONGEST, B_LONGEST, MASK_LONGEST = (tl.constexpr(spec.longest(codes)) for codes in _CODES)
A_BITS, B_BITS, MASK_BITS = (tl.constexpr((1 << spec.longest(codes)) - 1) for codes in _CODES)


@triton.jit
def contexts(before_a: tl.tensor, before_b: tl.tensor, first: tl.constexpr) -> tl.tensor:
    """Return contexts of A, and of B where A is not zero, as :func:`actcodec.golden.gmc.contexts` does."""
    after_zero = (before_a == 0) & (before_b > 0)
    if first:
        return tl.full(before_a.shape, GMC_A_FIRST, tl.int32), tl.full(before_a.shape, GMC_B_FIRST, tl.int32)
    else:
        context_a = tl.where(after_zero, GMC_A_AFTER_ZERO, tl.minimum(before_a, GMC_LAST_CONTEXT))
        return context_a, tl.minimum(before_b, GMC_LAST_CONTEXT)


@triton.jit
def is_coded(group_class: tl.tensor) -> tl.tensor:
    """Return whether the coefficients of groups of a class have a mask and fields."""
    return (group_class > 0) & (group_class < GMC_RAW_CLASS)


@triton.jit
def mask_row(group_class: tl.tensor) -> tl.tensor:
    """Return the row of the code words for masks of groups of a class; any row for classes without masks."""
    return tl.minimum(tl.maximum(group_class, 1), GMC_LAST_MASK_CLASS) - 1


@lru_cache
def code_words(device: torch.device) -> tuple[Tensor, ...]:
    """Return tables of A, B and masks: by row and symbol, the code word and its length, int32."""
    return tuple(_entries(words_of(codes, device)) for codes in _CODES)


@lru_cache
def lookups(device: torch.device) -> tuple[Tensor, ...]:
    """Return tables of A, B and masks: by row and bits, the symbol whose code word they begin with and its length, int32."""
    return tuple(_entries(symbols_of(codes, device)) for codes in _CODES)


def _entries(table: Tensor) -> Tensor:
    return (table[0] | table[1] << _LENGTH_AT).to(torch.int32)
