"""The choice for each kept value, found again in whichever graph the compiler makes of the model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from actcodec.graph.formats import format_of
from actcodec.graph.partition import KEEP, RECOMPUTE, Action, Saved

#: Values of fewer bytes are kept as they are.
LEAST_BYTES = 1 << 14


@dataclass(frozen=True)
class Choices:
    """Actions by the key of a value and its number among those of one key, and the action of all others.

    The ``repr`` identifies the object in the compiler's cache, whose entries hold compiled code.
    """

    default: str
    by_key: Mapping[tuple[str, int], str] = field(default_factory=dict)

    def of(self, saved: Sequence[Saved], before: Counter[str] | None = None) -> list[str]:
        """Return the action of each value of a part; ``before`` counts the keys of earlier parts and is updated."""
        counts = Counter[str]() if before is None else before
        found = []
        for one in saved:
            action = self.by_key.get((one.key, counts[one.key]), self.default)
            counts[one.key] += 1
            found.append(allowed(one, action))
        return found


def allowed(saved: Saved, action: str) -> str:
    """Return the action, or ``keep`` where a value does not suit it."""
    if action == RECOMPUTE:
        return action if saved.recomputed else KEEP
    return action if action != KEEP and saved.nbytes >= LEAST_BYTES and format_of(action).fits(saved.value) else KEEP


def action_of(name: str) -> Action:
    """Return the action that a name stands for."""
    return name if name in (KEEP, RECOMPUTE) else format_of(name)
