"""Jobs, values and scales as the payloads of a unit's streams."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from actcodec.backends.job import DTYPES, Job
from cdu_spec.affine import CODE_BITS, AffineSettings
from cdu_spec.coding import How, ShiftCoding, seed_of
from cdu_spec.geometry import LANES
from cdu_spec.mx import MxSettings, ScaleRule
from cdu_spec.port_fields import pack
from torch import Tensor

#: Integers with the number of bits of a floating-point format.
PATTERN = {32: torch.int32, 16: torch.int16}
#: Number of shift tables in a unit.
BANKS = 2


def descriptor(job: Job, bank: int = 0) -> dict[str, Any]:
    """Return a codec's job as the fields of the unit's ``job`` port."""
    return {
        "mode": int(job.mode),
        "bank": bank,
        "beats": job.beats,
        "row_beats": job.row_beats,
        "channel_rows": job.channel_rows,
        "how": how_fields(job.how),
        "seed": seed_of(job.how),
    }


def how_fields(how: How) -> dict[str, dict[str, int]]:
    """Return settings as the fields of :class:`cdu.words.How`."""
    if isinstance(how, ShiftCoding):
        return {"shifts": {"coder": how.coder, "point": how.point}}
    if isinstance(how, MxSettings):
        return {"mx": scaling(how)}
    return {"affine": quantizer(how)}


def quantizer(settings: AffineSettings | None) -> dict[str, int]:
    """Return settings as a :class:`cdu.words.Quantizer`."""
    if settings is None:
        return dict.fromkeys(("bits_log2", "step_log2", "stochastic", "block_range", "statistics"), 0)
    return {
        "bits_log2": CODE_BITS.index(settings.bits),
        "step_log2": settings.step_log2,
        "stochastic": int(settings.stochastic),
        "block_range": int(settings.block_range),
        "statistics": int(settings.statistics),
    }


def scaling(settings: MxSettings) -> dict[str, int]:
    """Return settings as a :class:`cdu.words.Scaling`."""
    return {"format": settings.kind.number, "rceil": int(settings.rule is ScaleRule.RCEIL)}


def float_bytes(values: Tensor) -> bytes:
    """Return floating-point values as bytes, little-endian, in memory order."""
    return bytes(values.contiguous().view(torch.uint8).numpy().data)


def float_beats(raw: bytes, job: Job) -> Tensor:
    """Return the values of a job from their bytes (inverse of :func:`float_bytes`), (beats, 8)."""
    return torch.frombuffer(bytearray(raw), dtype=DTYPES[job.dtype]).view(-1, LANES)


def counted_words(port: Mapping[str, Any], raw: bytes, unit_bytes: int = 1) -> list[int]:
    """Return bytes as payloads of a stream of words with ``count`` (in units of ``unit_bytes``) and ``last``."""
    data, count, last = port["fields"]
    size = data["width"] * data["count"] // 8
    words = []
    for begin in range(0, len(raw), size):
        part = raw[begin : begin + size]
        ends = begin + size >= len(raw)
        units = -(-len(part) // unit_bytes)
        words.append(int.from_bytes(part, "little") | units << count["offset"] | ends << last["offset"])
    return words


def scale_words(port: Mapping[str, Any], job: Job) -> list[int]:
    """Return the scales of a job, and its offsets if it has any, as payloads of a stream of :class:`cdu.words.Scale`."""
    patterns = bit_patterns(job.scales).tolist()
    offsets = job.offsets.tolist() if job.mode.has_offsets else [0] * len(patterns)
    return [
        pack(dict(port), {"value": bits, "offset": offset, "last": index == len(patterns) - 1})
        for index, (bits, offset) in enumerate(zip(patterns, offsets, strict=True))
    ]


def bit_patterns(values: Tensor) -> Tensor:
    """Return floating-point values as unsigned bit patterns, int64, same shape."""
    bits = values.element_size() * 8
    return values.contiguous().view(PATTERN[bits]).to(torch.int64) & ((1 << bits) - 1)


def same_bits(left: Tensor, right: Tensor) -> bool:
    """Return whether two floating-point tensors of one shape and dtype are equal bit for bit."""
    return left.shape == right.shape and bool(np.array_equal(bit_patterns(left).numpy(), bit_patterns(right).numpy()))
