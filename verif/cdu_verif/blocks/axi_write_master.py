"""The writing half of an AXI4 port."""

from __future__ import annotations

from cdu.dma.axi4 import BURST_WORDS
from cdu.dma.write_master import AxiWriteMaster
from cdu_spec.config import CduConfig

from cdu_verif.blocks import Record
from cdu_verif.formal import device
from cdu_verif.formal.device import Device
from cdu_verif.formal.levels import queue_facts

#: Bytes of the words that the stream rules are proven for, and how many wait.
_BYTES, _WORDS = 8, BURST_WORDS
#: Queues by their name in the device, and how much they hold.
_QUEUES = {
    "order.queue": 4,
    **{f"writer{number}.former.words": _WORDS for number in range(2)},
    **{f"writer{number}.former.queue.queue": 4 for number in range(2)},
}


def _narrow(config: CduConfig) -> Device:
    return device.of_component(AxiWriteMaster(_BYTES, (_WORDS, _WORDS)), "axi_write_master", config)


RECORD = Record(
    benches=["axi_write_master"],
    quick=[{}, {"dma_bits": 64}, {"dma_bits": 512}],
    full=[{"dma_bits": 256}],
    streams=queue_facts(_narrow, _QUEUES),
)
