"""Arithmetic of ``int8-rows`` by compiled kernels, bit for bit equal to the golden model."""

from __future__ import annotations

import torch
from torch import Tensor

from actcodec.backends.job import FORMATS
from actcodec.backends.native.host import host
from actcodec.backends.native.kernels import kernels


def codes(rows: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Compute :func:`actcodec.golden.floating.scaled_rows.codes`."""
    rows = host(rows)
    found, greatest = torch.empty_like(rows, dtype=torch.int8), torch.empty(len(rows))
    kernels()("scaled_row_codes", rows, FORMATS[rows.dtype], *rows.shape, found, greatest)
    return found, greatest, ~greatest.amax().isfinite()


def values(codes: Tensor, greatest: Tensor, dtype: torch.dtype) -> Tensor:
    """Compute :func:`actcodec.golden.floating.scaled_rows.values`."""
    y = torch.empty(codes.shape, dtype=dtype)
    kernels()("scaled_row_values", host(codes), host(greatest), FORMATS[dtype], *codes.shape, y)
    return y
