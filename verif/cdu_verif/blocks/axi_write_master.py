"""The writing half of an AXI4 port."""

from __future__ import annotations

from cdu.dma.axi4 import BURST_WORDS, ID_BITS
from cdu.dma.burst_former import BURSTS
from cdu.dma.write_master import BURSTS_ASKED, AxiWriteMaster
from cdu_spec.config import CduConfig

from cdu_verif.blocks import Record
from cdu_verif.formal import device
from cdu_verif.formal.binding import instance
from cdu_verif.formal.device import BoundDevice
from cdu_verif.formal.levels import queue_facts
from cdu_verif.formal.proof import Property
from cdu_verif.formal.solver import REACHABILITY, Sby
from cdu_verif.formal.stream_rules import with_assumptions

#: Bytes of the words that the stream rules are proven for, and how many wait.
_BYTES, _WORDS = 8, BURST_WORDS
#: Queues by their name in the device, and how much they hold.
_QUEUES = {
    "order.queue": BURSTS_ASKED,
    **{f"writer{number}.former.words": _WORDS for number in range(2)},
    **{f"writer{number}.former.queue.queue": BURSTS for number in range(2)},
}


def _narrow(config: CduConfig) -> BoundDevice:
    return device.of_component(AxiWriteMaster(_BYTES, (_WORDS, _WORDS)), "axi_write_master", config)


def _harness(made: BoundDevice) -> str:
    ports = {name: f"m_axi_{name}" for name in ("awvalid", "awready", "awid", "wvalid", "wready", "wlast")}
    # One more may be at the port.
    return with_assumptions(made, instance("write_turns", {"ID_BITS": ID_BITS, "CAPACITY": BURSTS_ASKED + 1}, ports))


def _properties(config: CduConfig) -> list[Property]:
    return [
        Property(
            "axi_write_master",
            "turns",
            "The bursts of words are those of the requests, in order: each comes from the writer that its request has as ID,"
            " and no word before its request. How long each is, burst_former words says.",
            lambda: _narrow(config).probed({"order.o__payload": 1}),
            Sby(REACHABILITY, 0, _harness),
        )
    ]


RECORD = Record(
    benches=["axi_write_master"],
    quick=[{}, {"dma_bits": 64}, {"dma_bits": 512}],
    full=[{"dma_bits": 256}],
    streams=queue_facts(_narrow, _QUEUES),
    properties=_properties,
)
