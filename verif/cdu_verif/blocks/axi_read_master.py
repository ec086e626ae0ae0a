"""The reading half of an AXI4 port."""

from __future__ import annotations

from functools import partial

from cdu.dma.axi4 import BURST_WORDS, Burst
from cdu.dma.read_master import AxiReadMaster
from cdu_spec.config import CduConfig

from cdu_verif.blocks import Record
from cdu_verif.formal import device
from cdu_verif.formal.binding import instance
from cdu_verif.formal.device import BoundDevice
from cdu_verif.formal.levels import queue_facts
from cdu_verif.formal.proof import Property
from cdu_verif.formal.properties import probed
from cdu_verif.formal.solver import INDUCTION, Sby
from cdu_verif.formal.stream_rules import with_assumptions

#: Bytes of the words that the stream rules are proven for, and how many wait.
_BYTES, _WORDS = 8, BURST_WORDS
#: Readers of the block.
_READERS = 2
#: Modes one of which repeats values in its padding.
_REPEATS = ("sfpr", "division")
#: Queues by their name in the device, and how much they hold.
_QUEUES = {"reader0.arrived": _WORDS, "reader0.plan.queue": _WORDS // 4}


def _narrow(config: CduConfig) -> BoundDevice:
    return device.of_component(AxiReadMaster(_BYTES, (_WORDS,)), "axi_read_master", config)


def _harness(made: BoundDevice) -> str:
    """Every request that is offered is a burst that AXI4 allows, and so is every one that waits in a reader."""
    ports = {name: f"m_axi_ar{name}" for name in ("valid", "addr", "len", "size", "burst")}
    waiting = ""
    for number in range(_READERS):
        valid, burst = (f"inner_reader{number}__cutter__bursts__{role}" for role in ("valid", "payload"))
        request = {"valid": valid, "addr": f"{burst}[39:0]", "len": f"{burst}[44:40] - 8'd1", "size": "m_axi_arsize"}
        waiting += instance("axi_burst", {}, request | {"burst": "2'd1"}, f"waiting{number}")
    return with_assumptions(made, instance("axi_burst", {}, ports) + waiting)


def _properties(config: CduConfig) -> list[Property]:
    waiting = {"valid": 1, "payload": Burst().size}
    probes = {f"reader{n}.cutter.bursts__{role}": bits for n in range(_READERS) for role, bits in waiting.items()}
    made = partial(probed, "axi_read_master", config, probes)
    statement = "Every read is of whole words, at most 16, and ends before the next boundary of 4 KiB."
    return [Property("axi_read_master", "bursts", statement, made, Sby(INDUCTION, 2, _harness))]


RECORD = Record(
    benches=["axi_read_master"],
    quick=[{}, {"dma_bits": 64, "modes": _REPEATS}, {"dma_bits": 512, "value_format": "bf16", "modes": _REPEATS}],
    full=[{"dma_bits": 256}, {"dma_bits": 256, "modes": _REPEATS}],
    streams=queue_facts(_narrow, _QUEUES),
    properties=_properties,
)
