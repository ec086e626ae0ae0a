"""Constants of the 8x8 transform of mode jpeg-act for kernels that compute with integers."""

from __future__ import annotations

from functools import lru_cache

import torch
from cdu_spec.dct import basis, pass_shifts
from cdu_spec.geometry import LANES
from torch import Tensor

from actcodec.golden.shift_quantizer import COEFFICIENT_MIN


@lru_cache
def integer_basis(const_bits: int, device: torch.device | None = None) -> Tensor:
    """Return the matrix of one forward pass, int32 (8, 8) [frequency][sample]."""
    return torch.tensor(basis(const_bits), dtype=torch.int32, device=device)


@lru_cache
def needs_64_bits(const_bits: int, pass1_bits: int) -> bool:
    """Return whether a sum in the inverse transform of any coefficients may exceed 32 bits; forward sums never do."""
    first, second = pass_shifts(const_bits, pass1_bits)
    column = max(sum(abs(row[sample]) for row in basis(const_bits)) for sample in range(LANES))
    between = (column * -COEFFICIENT_MIN >> first) + 1
    return between * column + (1 << second >> 1) >= 1 << 31
