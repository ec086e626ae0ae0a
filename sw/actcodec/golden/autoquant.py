"""Modes autoquant and autoquantz on integers: signed codes with a fixed step per job (AC-GC, AutoQuant and AutoQuantZ).

Code and integer are related by ``value = (code - 2**(bits - 1)) * 2**step_log2``. autoquantz keeps only the codes of nonzero
values: a mask per block of 64 values, then the codes of each row, moved together and padded to whole bytes.
"""

from __future__ import annotations

import torch
from cdu_spec.affine import AffineSettings
from cdu_spec.bitstream import BitstreamError
from cdu_spec.geometry import BLOCK_SIDE, LANES
from cdu_spec.modes import MASK_BYTES
from torch import Tensor

from actcodec.golden.affine import Ranges, dequantize, quantize
from actcodec.golden.bits import pack_bits, unpack_bits
from actcodec.golden.block_starts import block_starts, mask_chain
from actcodec.golden.checks import require
from actcodec.golden.codes import pack_codes, unpack_codes
from actcodec.golden.movement import select, spread


def encode(beats: Tensor, settings: AffineSettings, first: int = 0, *, down: bool = False) -> Tensor:
    """Encode int16 (beats, 8) without masks to uint8 (beats * bits,); ``first`` and ``down`` as in ``affine.quantize``."""
    return pack_codes(_codes(beats, settings, first, down=down), settings.bits).view(-1)


def decode(payload: Tensor, beats: int, settings: AffineSettings) -> Tensor:
    """Decode a payload without masks to int32 (beats, 8); raise BitstreamError for a payload of another length."""
    require("payload", payload, (torch.uint8,))
    if payload.numel() != beats * settings.bits:
        raise BitstreamError(f"corrupted stream: {payload.numel()} payload bytes are not {beats} beats of {settings.bits}")
    return _integers(unpack_codes(payload.view(beats, settings.bits), settings.bits), settings)


def encode_masked(beats: Tensor, settings: AffineSettings, first: int = 0) -> Tensor:
    """Encode int16 (8 * blocks, 8) with masks to uint8 (8 * blocks + bytes of the nonzero codes,).

    ``first`` as in ``affine.quantize``.
    """
    bits = settings.bits
    zero = 1 << (bits - 1)
    codes = _codes(beats, settings, first)
    nonzero = codes != zero
    signed = (codes - zero) & settings.levels
    together = torch.zeros_like(codes).masked_scatter_(_front(nonzero.sum(1)), signed[nonzero])
    full = torch.empty(len(beats) // BLOCK_SIDE, MASK_BYTES + BLOCK_SIDE * bits, dtype=torch.uint8, device=beats.device)
    present = torch.ones(full.shape, dtype=torch.bool, device=beats.device)
    full[:, :MASK_BYTES] = pack_bits(nonzero.view(-1, LANES * BLOCK_SIDE))
    full[:, MASK_BYTES:] = pack_codes(together, bits).view(-1, BLOCK_SIDE * bits)
    present[:, MASK_BYTES:] = _kept_bytes(nonzero, bits)
    return select(full, present)


def decode_masked(payload: Tensor, blocks: int, settings: AffineSettings) -> Tensor:
    """Decode a payload with masks to int32 (8 * blocks, 8).

    Raises BitstreamError when the chain of blocks does not end, after ``blocks`` blocks, exactly at the end of the payload.
    """
    require("payload", payload, (torch.uint8,))
    return decode_masked_at(payload, block_starts(payload, blocks, mask_chain(settings.bits)), settings)


def decode_masked_at(payload: Tensor, starts: Tensor, settings: AffineSettings) -> Tensor:
    """Decode a payload of exactly the blocks with masks that begin at ``starts``, int64 (n,), to int32 (8 * n, 8)."""
    bits = settings.bits
    masks = payload[starts[:, None] + torch.arange(MASK_BYTES, device=payload.device)]
    nonzero = unpack_bits(masks).view(-1, LANES)
    present = torch.ones(len(starts), MASK_BYTES + BLOCK_SIDE * bits, dtype=torch.bool, device=payload.device)
    present[:, MASK_BYTES:] = _kept_bytes(nonzero, bits)
    bodies = spread(payload, present)[:, MASK_BYTES:]
    together = unpack_codes(bodies.reshape(-1, bits), bits)
    signed = torch.zeros_like(together).masked_scatter_(nonzero, together[_front(nonzero.sum(1))])
    return _integers((signed + (1 << (bits - 1))) & settings.levels, settings)


def _codes(beats: Tensor, settings: AffineSettings, first: int, *, down: bool = False) -> Tensor:
    require("beats", beats, (torch.int16,), (LANES,))
    return quantize(beats, _range(settings, beats.device), settings, first, down=down)


def _integers(codes: Tensor, settings: AffineSettings) -> Tensor:
    return dequantize(codes, _range(settings, codes.device))


def _range(settings: AffineSettings, device: torch.device) -> Ranges:
    """Return the range that all rows of a job share, (1, 1)."""
    return Ranges.fixed(torch.full((1, 1), settings.fixed_low, dtype=torch.int32, device=device), settings.step_log2)


def _front(counts: Tensor) -> Tensor:
    """Return rows of 8 flags of which the first ``counts`` are set: integers (rows,) to bool (rows, 8)."""
    return torch.arange(LANES, device=counts.device) < counts[:, None]


def _kept_bytes(nonzero: Tensor, bits: int) -> Tensor:
    """Return which bytes of a block's packed rows are written, bool (blocks, 8 * bits)."""
    kept = (nonzero.sum(1) * bits + LANES - 1) // LANES
    flags = torch.arange(bits, device=nonzero.device) < kept[:, None]
    return flags.view(-1, BLOCK_SIDE * bits)
