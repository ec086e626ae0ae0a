"""Numbers for writes to registers: of those that a register takes, and all kinds of those that it refuses."""

from __future__ import annotations

from random import Random

from cdu_spec.register_types import REGISTER_BITS, Register


def taken(entry: Register, rng: Random) -> int:
    """A random number that a write to a register may have; in registers of flags the bits outside the fields, too."""
    fields = sum(part.mask for part in entry.fields)
    value = 0 if entry.is_exact else rng.getrandbits(REGISTER_BITS) & ~fields
    for part in entry.fields:
        value |= rng.choice(part.written) << part.low
    return value


def refused(entry: Register, rng: Random) -> list[int]:
    """Numbers that a write to a register must not have: every bit outside the fields, some of them together, every number that
    a field does not take, all behind fields with random numbers.
    """
    found = []
    fields = sum(part.mask for part in entry.fields)
    outside = [1 << place for place in range(REGISTER_BITS) if not fields >> place & 1] if entry.is_exact else []
    for bit in outside:
        found.append((taken(entry, rng) & fields) | bit)
    if outside:
        found += [(taken(entry, rng) & fields) | rng.choice(outside) | rng.choice(outside) for _ in range(4)]
    for part in entry.fields:
        wrong = [number for number in range(1 << min(part.width, 16)) if number not in part.written]
        found += [(taken(entry, rng) & ~part.mask) | number << part.low for number in wrong]
    return found
