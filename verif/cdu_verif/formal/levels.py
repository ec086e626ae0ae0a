"""The rules of streams of devices with queues, whose counters induction has to be told about."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from cdu_spec.config import CduConfig

from cdu_verif.formal.device import Device
from cdu_verif.formal.properties import StreamFacts
from cdu_verif.formal.queues import queue_counters, queue_probes
from cdu_verif.formal.stream_rules import stream_harness


def queue_facts(device: Callable[[CduConfig], Device], depths: Mapping[str, int]) -> StreamFacts:
    """Facts of a device with queues, by the modules that their counters stand in, of these depths."""

    def held(config: CduConfig) -> Device:
        probes: dict[str, int] = {}
        for path, depth in depths.items():
            probes |= queue_probes(path, depth)
        return device(config).probed(probes)

    def rules(made: Device) -> str:
        return stream_harness(made, body="".join(queue_counters(path, depth) for path, depth in depths.items()))

    return StreamFacts(device=device, held=held, rules=rules)
