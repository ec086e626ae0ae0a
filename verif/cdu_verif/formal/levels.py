"""Stream rules of devices with queues, whose counters need invariants for induction."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from cdu_spec.config import CduConfig

from cdu_verif.formal.device import Device
from cdu_verif.formal.properties import StreamFacts
from cdu_verif.formal.queues import queue_counters, queue_probes
from cdu_verif.formal.stream_rules import stream_harness


def queue_facts(device: Callable[[CduConfig], Device], depths: Mapping[str, int]) -> StreamFacts:
    """Return the facts of a device with queues of these depths, by the modules of their counters."""

    def held(config: CduConfig) -> Device:
        probes: dict[str, int] = {}
        for path, depth in depths.items():
            probes |= queue_probes(path, depth)
        return device(config).probed(probes)

    def rules(made: Device) -> str:
        return stream_harness(made, body="".join(queue_counters(path, depth) for path, depth in depths.items()))

    return StreamFacts(device=device, held=held, rules=rules)
