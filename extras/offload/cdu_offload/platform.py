"""The machine around the CDUs: GPU, memory, crossbar, link to the host. Numbers and their sources are in platform.json."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cdu_offload.network import LayerWork, OffloadNetwork

SHIPPED = Path(__file__).with_name("platform.json")
#: Number of times that a bisection halves its interval: float64 has no more digits.
_HALVINGS = 60


@dataclass(frozen=True)
class Platform:
    """Rates that the simulation works with."""

    flops_per_s: float  #: rate that convolutions and matrix products reach
    memory_bytes_per_s: float  #: reached
    link_bytes_per_s: float  #: each direction
    port_bytes_per_s: float  #: rate of one crossbar port
    packet_bytes: int  #: transfers over the link are multiples of this

    def seconds(self, work: LayerWork, memory_bytes_per_s: float | None = None) -> float:
        """Return the roofline: the longer of computing and moving."""
        return max(work.flops / self.flops_per_s, work.nbytes / (memory_bytes_per_s or self.memory_bytes_per_s))

    def step_seconds(self, network: OffloadNetwork) -> float:
        """Return the seconds of a training step that keeps everything in GPU memory."""
        return sum(self.seconds(work) for work in (*network.forward, *network.backward))


def facts() -> dict[str, dict[str, Any]]:
    """Return platform.json: name -> ``value`` and ``source``."""
    found: dict[str, dict[str, Any]] = json.loads(SHIPPED.read_text(encoding="utf-8"))
    return found


def titan_v(known: Mapping[str, Mapping[str, Any]], anchor: OffloadNetwork, link_bytes_per_s: float | None = None) -> Platform:
    """Return JPEG-ACT's machine; :func:`compute_efficiency` gives the part of its peak rate that convolutions reach."""

    def value(name: str) -> float:
        return float(known[name]["value"])

    return Platform(
        flops_per_s=value("flops_per_s") * compute_efficiency(known, anchor),
        memory_bytes_per_s=value("memory_bytes_per_s") * value("memory_efficiency"),
        link_bytes_per_s=link_bytes_per_s or value("link_bytes_per_s"),
        port_bytes_per_s=value("port_bytes_per_cycle") * value("crossbar_hz"),
        packet_bytes=int(value("packet_bytes")),
    )


def compute_efficiency(known: Mapping[str, Mapping[str, Any]], anchor: OffloadNetwork) -> float:
    """Return the part of the peak rate with which the roofline of ``anchor`` (ResNet-50) matches NVIDIA's time for V100."""
    memory = known["anchor_memory_bytes_per_s"]["value"] * known["memory_efficiency"]["value"]
    wanted = anchor.batch / known["anchor_images_per_s"]["value"]
    low, high = 0.0, 1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        guess = Platform(known["anchor_flops_per_s"]["value"] * middle, memory, 0, 0, 1)
        low, high = (middle, high) if guess.step_seconds(anchor) > wanted else (low, middle)
    return high
