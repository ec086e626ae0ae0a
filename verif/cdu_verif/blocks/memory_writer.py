"""What puts packets into segments of memory."""

from __future__ import annotations

from cdu.dma.axi4 import BURST_WORDS
from cdu.dma.memory_writer import UNANSWERED, MemoryWriter, WriteResult
from cdu_spec.config import CduConfig

from cdu_verif.blocks import Record
from cdu_verif.formal import device
from cdu_verif.formal.binding import instance
from cdu_verif.formal.device import Device
from cdu_verif.formal.proof import Property
from cdu_verif.formal.solver import INDUCTION, Sby
from cdu_verif.formal.stream_rules import with_assumptions

#: Bytes of the words that are proven.
_BYTES = 8
_PROBES = {"former.closed": 1, "window.finishes": 1, "expects": 1, "refused": 1} | dict.fromkeys(
    ("unanswered", "due"), UNANSWERED.bit_length()
)


def _harness(writer: Device) -> str:
    return with_assumptions(
        writer, instance("unanswered_bursts", {"MOST": UNANSWERED, "FAILED": WriteResult()["failed"].offset}, {})
    )


def _properties(config: CduConfig) -> list[Property]:
    return [
        Property(
            "memory_writer",
            "outstanding",
            f"No more than {UNANSWERED} bursts have no answer. A packet has its result when all its bursts have one; it says "
            "whether memory refused one of them, and of none of the next packet, whose bursts may be under way.",
            lambda: device.of_component(MemoryWriter(_BYTES, BURST_WORDS), "memory_writer", config).probed(_PROBES),
            Sby(INDUCTION, 2, _harness),
        )
    ]


RECORD = Record(benches=(), streams=None, properties=_properties)
