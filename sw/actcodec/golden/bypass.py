"""Bypass: unchanged floating-point values, in whole beats."""

from __future__ import annotations

import torch
from cdu_spec.bitstream import BitstreamError
from cdu_spec.geometry import LANES
from torch import Tensor

from actcodec.golden.checks import require
from actcodec.golden.sfpr import FLOATS


def encode(values: Tensor) -> Tensor:
    """Return the bit patterns of ``values``, lowest byte first, padded with zeros to a whole beat of 8 values.

    Takes floats of any shape, n in all; returns uint8 (ceil(n / 8) * 8 * bytes per value,), a copy.
    """
    require("values", values, FLOATS)
    padded = torch.zeros(-(-values.numel() // LANES) * LANES, dtype=values.dtype, device=values.device)
    padded[: values.numel()] = values.reshape(-1)
    return padded.view(torch.uint8)


def decode(payload: Tensor, count: int, dtype: torch.dtype) -> Tensor:
    """Return the first ``count`` values, (count,), copied; raise BitstreamError for a payload of another length."""
    require("payload", payload, (torch.uint8,))
    if payload.numel() != -(-count // LANES) * LANES * dtype.itemsize:
        raise BitstreamError(f"{payload.numel()} payload bytes do not hold {count} values of {dtype.itemsize} bytes")
    return payload.clone().view(dtype)[:count]
