"""Rule of docs/reference/bitstream.md with its streams, and the parts that all rules share."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from cdu_verif.stimulus.streams.plain import AFFINE, BITS, DIVISION, MODES, MX, MX_BITS, PlainStream, example


class Refuses(Enum):
    """Component that refuses a stream if a unit decodes (section 7)."""

    READER = "whoever takes the stream apart, before a job is given to a unit"
    HOST = "the host, from the payload, before it gives the job to a unit"
    UNIT = "the unit, which raises a bit of ERRORS"


@dataclass(frozen=True)
class Rule:
    """One rule of a section of the page, the component that refuses a stream that breaks it, and streams by their label."""

    name: str
    section: int
    by: Refuses
    good: Mapping[str, bytes]
    bad: Mapping[str, bytes]


def sealed(body: bytes) -> bytes:
    """Return a body with its checksum."""
    return body + struct.pack("<I", zlib.crc32(body))


def float32(pattern: int) -> float:
    """Return the number of a bit pattern."""
    (number,) = struct.unpack("<f", struct.pack("<I", pattern))
    return float(number)


#: Limits of the range of reciprocals, and the numbers next to them, outside.
LEAST, MOST, MOST_AFFINE = 2.0**-120, 2.0**120, 2.0**111
BEYOND = {
    "below 2**-120": float32(0x037FFFFF),
    "0": 0.0,
    "-0": -0.0,
    "negative": -1.0,
    "subnormal": 2.0**-149,
    "infinite": float("inf"),
    "minus infinite": float("-inf"),
    "NaN": float("nan"),
}


def every() -> dict[str, PlainStream]:
    """Return a valid stream of every mode, and of every variant of an affine mode."""
    found = {f"mode {mode}": example(mode) for mode in MODES}
    for bits in BITS:
        found |= {f"mode {mode}, {bits} bits": example(mode, bits=bits) for mode in AFFINE}
        found[f"division by block, {bits} bits"] = example(DIVISION, bits=bits, step=0x80)
    return found | {f"mode {MX}, format {number}": example(MX, bits=number) for number in range(len(MX_BITS))}


def packed(streams: Mapping[str, PlainStream]) -> dict[str, bytes]:
    """Return the bytes of streams."""
    return {name: bytes(stream) for name, stream in streams.items()}
