"""BRC: one bit per value, set where the value is positive (the gradient mask of a ReLU)."""

from __future__ import annotations

import torch
from cdu_spec.bitstream import BitstreamError
from torch import Tensor

from actcodec.golden.bits import pack_bits, unpack_bits
from actcodec.golden.checks import require
from actcodec.golden.pieces import CHUNK_VALUES
from actcodec.golden.sfpr import FLOATS

_BYTE_BITS = 8


def encode(values: Tensor) -> Tensor:
    """Return the bits of ``values > 0`` as bytes, value i at bit ``i % 8`` of byte ``i // 8``.

    Takes floats (n,), any n; returns uint8 (ceil(n / 8),), unused bits zero. NaN gives 0.
    """
    require("values", values, FLOATS)
    flat = values.reshape(-1)
    payload = torch.empty(-(-flat.numel() // _BYTE_BITS), dtype=torch.uint8, device=values.device)
    for start in range(0, flat.numel(), CHUNK_VALUES):
        positive = flat[start : start + CHUNK_VALUES] > 0
        whole = torch.nn.functional.pad(positive, (0, -positive.numel() % _BYTE_BITS))
        payload[start // _BYTE_BITS :][: whole.numel() // _BYTE_BITS] = pack_bits(whole)
    return payload


def decode(payload: Tensor, count: int, dtype: torch.dtype = torch.float32) -> Tensor:
    """Return the first ``count`` bits as 1.0 and 0.0, (count,); raise BitstreamError for a payload of another length."""
    require("payload", payload, (torch.uint8,))
    if payload.numel() != -(-count // _BYTE_BITS):
        raise BitstreamError(f"{payload.numel()} payload bytes do not hold {count} bits")
    values = torch.empty(count, dtype=dtype, device=payload.device)
    for start in range(0, count, CHUNK_VALUES):
        part = values[start : start + CHUNK_VALUES]
        part.copy_(unpack_bits(payload[start // _BYTE_BITS : (start + CHUNK_VALUES) // _BYTE_BITS])[: part.numel()])
    return values
