"""BRC: one bit per value, set where the value is positive (the gradient mask of a ReLU)."""

from __future__ import annotations

import torch
from cdu_spec.bitstream import BitstreamError
from torch import Tensor

from actcodec.golden.bits import pack_bits, unpack_bits
from actcodec.golden.checks import require
from actcodec.golden.sfpr import FLOATS


def encode(values: Tensor) -> Tensor:
    """Bits of ``values > 0`` as bytes, value i at bit ``i % 8`` of byte ``i // 8``.

    Takes floats (n,), any n; returns uint8 (ceil(n / 8),), unused bits zero. NaN gives 0.
    """
    require("values", values, FLOATS)
    positive = torch.zeros(-(-values.numel() // 8) * 8, dtype=torch.bool, device=values.device)
    positive[: values.numel()] = values.reshape(-1) > 0
    return pack_bits(positive)


def decode(payload: Tensor, count: int, dtype: torch.dtype = torch.float32) -> Tensor:
    """The first ``count`` bits as 1.0 and 0.0 of ``dtype``, shape (count,); BitstreamError for a payload of another length."""
    require("payload", payload, (torch.uint8,))
    if payload.numel() != -(-count // 8):
        raise BitstreamError(f"{payload.numel()} payload bytes do not hold {count} bits")
    return unpack_bits(payload)[:count].to(dtype)
