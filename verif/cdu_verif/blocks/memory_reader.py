"""Record of the memory reader, which fetches segments of memory."""

from __future__ import annotations

from cdu.dma.axi4 import BURST_WORDS, Burst
from cdu.dma.memory_reader import MemoryReader
from cdu_spec.config import CduConfig

from cdu_verif.blocks import Record
from cdu_verif.formal import device
from cdu_verif.formal.binding import fields, instance
from cdu_verif.formal.device import BoundDevice
from cdu_verif.formal.proof import Property
from cdu_verif.formal.queues import queue_counters, queue_probes
from cdu_verif.formal.solver import INDUCTION, Sby
from cdu_verif.formal.stream_rules import with_assumptions

#: Bytes of a word in the proofs, and the number of words in progress or waiting.
_BYTES, _WORDS = 8, BURST_WORDS
_PROBES = {"free": _WORDS.bit_length(), "arrived.o__valid": 1, **queue_probes("arrived", _WORDS)}
#: The burst that waits for room.
_WAITING = {"cutter.bursts__valid": 1, "cutter.bursts__payload": Burst().size}


def _harness(reader: BoundDevice) -> str:
    ports = fields(reader, "bursts__payload", "words")
    return with_assumptions(reader, instance("room_for_answers", {"WORDS": _WORDS}, ports) + queue_counters("arrived", _WORDS))


def _properties(config: CduConfig) -> list[Property]:
    return [
        Property(
            "memory_reader",
            "room",
            "No more words are asked for than there is room for: every answer is taken in the cycle in which it comes.",
            lambda: device.of_component(MemoryReader(_BYTES, _WORDS), "memory_reader", config).probed(_PROBES | _WAITING),
            Sby(INDUCTION, 2, _harness),
        )
    ]


RECORD = Record(benches=(), streams=None, properties=_properties)
