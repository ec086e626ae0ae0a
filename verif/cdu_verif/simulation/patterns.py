"""Patterns of cycles in which a stream end is willing: iterators of booleans, one per cycle."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import repeat
from random import Random

Pattern = Iterator[bool]


def always() -> Pattern:
    """Yield true in every cycle."""
    return repeat(True)


def coin(rng: Random, share: float) -> Pattern:
    """Yield true in each cycle independently with probability ``share``."""
    while True:
        yield rng.random() < share


def bursts(rng: Random, longest: int) -> Pattern:
    """Yield runs of willing and unwilling cycles, each of 1 to ``longest`` cycles."""
    while True:
        for willing in (True, False):
            yield from repeat(willing, rng.randint(1, longest))


def long_stalls(rng: Random) -> Pattern:
    """Yield mostly willing cycles, at times unwilling ones for up to 100 cycles."""
    while True:
        yield from repeat(True, rng.randint(1, 150))
        yield from repeat(False, rng.randint(20, 100))


#: Behaviour of source and sink by name.
PATTERNS: dict[str, Callable[[Random], tuple[Pattern, Pattern]]] = {
    "full_rate": lambda rng: (always(), always()),
    "idle": lambda rng: (coin(rng, 0.5), always()),
    "pressure": lambda rng: (always(), coin(rng, 0.5)),
    "bursts": lambda rng: (bursts(rng, 12), bursts(rng, 12)),
    "coins": lambda rng: (coin(rng, 0.6), coin(rng, 0.6)),
    "stalls": lambda rng: (long_stalls(rng), long_stalls(rng)),
}
