"""Many values at once to and from the bits of a port, after the bit fields that the manifest lists."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
#: Entries of ``ports`` in a manifest, by name.
Ports = Mapping[str, Mapping[str, Any]]

#: Fields wider than this hold raw bytes and are given as such.
_INTEGER_BITS = 63


def pack_rows(port: Mapping[str, Any], values: Mapping[str, Array]) -> list[int]:
    """The bits of a port for each of B values.

    Parameters
    ----------
    port
        Entry of ``ports`` in the manifest.
    values
        For every field an integer array (B, count) (or (B,) when count is 1); for fields wider than 63 bits uint8 (B, bytes).
        The single field of a port without named fields is called ``""``.

    Raises ValueError for a missing or unknown field and for integers that do not fit.
    """
    fields = port["fields"]
    if set(values) != {field["name"] for field in fields}:
        raise ValueError(f"{port['name']} has the fields {[field['name'] for field in fields]}, not {list(values)}")
    rows = len(next(iter(values.values())))
    bits = np.zeros((rows, -(-port["width"] // 8) * 8), dtype=np.uint8)
    for field in fields:
        span = field["width"] * field["count"]
        bits[:, field["offset"] : field["offset"] + span] = _bits(field, np.asarray(values[field["name"]]), rows)
    packed = np.packbits(bits, axis=1, bitorder="little")
    return [int.from_bytes(row.tobytes(), "little") for row in packed]


def unpack_rows(port: Mapping[str, Any], words: Sequence[int]) -> dict[str, Array]:
    """The inverse of :func:`pack_rows`: int64 (B, count) per field, uint8 (B, bytes) for fields wider than 63 bits."""
    size = -(-port["width"] // 8)
    raw = np.frombuffer(b"".join(word.to_bytes(size, "little") for word in words), dtype=np.uint8).reshape(-1, size)
    bits = np.unpackbits(raw, axis=1, bitorder="little")
    result: dict[str, Array] = {}
    for field in port["fields"]:
        width, count = field["width"], field["count"]
        part = bits[:, field["offset"] : field["offset"] + width * count]
        if width > _INTEGER_BITS:
            result[field["name"]] = np.packbits(part, axis=1, bitorder="little")
            continue
        weights = 1 << np.arange(width, dtype=np.int64)
        if field["signed"]:
            weights[-1] = -weights[-1]
        result[field["name"]] = (part.reshape(len(words), count, width).astype(np.int64) * weights).sum(2)
    return result


def _bits(field: Mapping[str, Any], values: Array, rows: int) -> Array:
    width, count = field["width"], field["count"]
    if width > _INTEGER_BITS:
        return np.unpackbits(values.astype(np.uint8).reshape(rows, -1), axis=1, bitorder="little")[:, :width]
    low, high = (-(1 << (width - 1)), (1 << (width - 1)) - 1) if field["signed"] else (0, (1 << width) - 1)
    integers = values.astype(np.int64).reshape(rows, count)
    if integers.size and not (low <= int(integers.min()) and int(integers.max()) <= high):
        raise ValueError(
            f"field {field['name'] or 'of the port'} holds {low} to {high}, not {integers.min()} to {integers.max()}"
        )
    return (integers[:, :, None] >> np.arange(width) & 1).astype(np.uint8).reshape(rows, width * count)
