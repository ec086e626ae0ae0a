"""Queues inside a device: their counters, and the invariant that makes stream rules inductive."""

from __future__ import annotations

from cdu_verif.formal.binding import instance

#: The two counters of a queue.
_ENDS = ("produce", "consume")


def queue_probes(path: str, depth: int) -> dict[str, int]:
    """Return probes of the counters of the queue of ``depth`` payloads in the module ``path``."""
    return {f"{path}.level": depth.bit_length(), **{f"{path}.{end}": (depth - 1).bit_length() for end in _ENDS}}


def queue_counters(path: str, depth: int) -> str:
    """Return the invariant of a queue's counters, for a device with its probes: their distance is the level."""
    wire = path.replace(".", "_")
    seen = {name: f"inner_{path.replace('.', '__')}__{name}" for name in ("level", *_ENDS)}
    return instance("queue_counters", {"DEPTH": depth}, seen, f"counters_{wire}")
