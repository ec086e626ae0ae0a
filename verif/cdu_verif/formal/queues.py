"""Queues inside a device: their counters, and what has to be known of them that rules of streams are inductive."""

from __future__ import annotations

from cdu_verif.formal.binding import instance

#: The two counters of a queue.
_ENDS = ("produce", "consume")


def queue_probes(path: str, depth: int) -> dict[str, int]:
    """Probes of the counters that stand in the module of this name, those of a queue that has room for so many payloads."""
    return {f"{path}.level": depth.bit_length(), **{f"{path}.{end}": (depth - 1).bit_length() for end in _ENDS}}


def queue_counters(path: str, depth: int) -> str:
    """What the counters of a queue that has these probes mean: so many places are taken between the one and the other."""
    wire = path.replace(".", "_")
    seen = {name: f"inner_{path.replace('.', '__')}__{name}" for name in ("level", *_ENDS)}
    return instance("queue_counters", {"DEPTH": depth}, seen, f"counters_{wire}")
