"""Record of the memory writer, which writes packets to segments of memory."""

from __future__ import annotations

from amaranth.utils import exact_log2
from cdu.dma.axi4 import BURST_WORDS
from cdu.dma.burst_former import PlacedWord
from cdu.dma.memory_writer import UNANSWERED, MemoryWriter, WriteResult
from cdu_spec.config import CduConfig
from cdu_spec.dma import MEMORY_ADDRESS_BITS, SIZE_BITS

from cdu_verif.blocks import Record
from cdu_verif.formal import device
from cdu_verif.formal.binding import fields, instance
from cdu_verif.formal.device import BoundDevice
from cdu_verif.formal.proof import Property
from cdu_verif.formal.solver import INDUCTION, Sby
from cdu_verif.formal.stream_rules import with_assumptions

#: Bytes of a word in the proofs.
_BYTES = 8
_PROBES = {"former.closed": 1, "window.finishes": 1, "expects": 1, "refused": 1} | dict.fromkeys(
    ("unanswered", "due"), UNANSWERED.bit_length()
)
#: The written words, and the registers with their addresses.
_PLACES = {"former.i__valid": 1, "former.i__ready": 1, "former.i__payload": PlacedWord(_BYTES).size} | {
    "former.begun": 1,
    "window.finishes": 1,
    "active": 1,
    "rest": 1,
    "word_address": MEMORY_ADDRESS_BITS - exact_log2(_BYTES),
    "offset": exact_log2(_BYTES),
    "left": SIZE_BITS,
    "of_memory": 1,
    "whole": 1,
    "count": _BYTES.bit_length(),
}


def _harness(writer: BoundDevice) -> str:
    return with_assumptions(
        writer, instance("unanswered_bursts", {"MOST": UNANSWERED, "FAILED": WriteResult()["failed"].offset}, {})
    )


def _places_harness(writer: BoundDevice) -> str:
    ports = fields(writer, "segments__payload", "address", "bytes")
    return with_assumptions(writer, instance("words_in_segments", {"BYTES": _BYTES}, ports))


def _writer(config: CduConfig) -> BoundDevice:
    return device.of_component(MemoryWriter(_BYTES, BURST_WORDS), "memory_writer", config)


def _properties(config: CduConfig) -> list[Property]:
    return [
        Property(
            "memory_writer",
            "outstanding",
            f"No more than {UNANSWERED} bursts have no answer. A packet has its result when all its bursts have one; it says "
            "whether memory refused one of them, and of none of the next packet, whose bursts may be under way.",
            lambda: _writer(config).probed(_PROBES),
            Sby(INDUCTION, 2, _harness),
        ),
        Property(
            "memory_writer",
            "places",
            "Every word has the address and the bytes that its segment says, whatever words a packet has, an empty last one"
            " among them. A burst goes on with the next word in memory, and ends with its segment and with its packet.",
            lambda: _writer(config).probed(_PLACES),
            Sby(INDUCTION, 2, _places_harness),
        ),
    ]


RECORD = Record(benches=(), streams=None, properties=_properties)
