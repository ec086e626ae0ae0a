"""Record of the burst former, which makes bursts of a writer's words."""

from __future__ import annotations

from amaranth.utils import exact_log2
from cdu.dma.axi4 import BURST_WORDS
from cdu.dma.burst_former import BURSTS, BurstFormer
from cdu_spec.config import CduConfig

from cdu_verif.blocks import Record
from cdu_verif.formal import device
from cdu_verif.formal.binding import fields, instance
from cdu_verif.formal.device import Device
from cdu_verif.formal.proof import Property
from cdu_verif.formal.solver import INDUCTION, REACHABILITY, Sby
from cdu_verif.formal.stream_rules import with_assumptions

#: Bytes of a word in the proofs.
_BYTES = 8
_PROBES = {"queue.w_en": 1, "queue.w_data": 45, "open_words": 4, "first": 40}


def _harness(former: Device) -> str:
    ports = fields(former, "i__payload", "address", "last")
    return with_assumptions(former, instance("former_bursts", {"WORD_BITS": exact_log2(_BYTES)}, ports))


def _words_harness(former: Device) -> str:
    ports = fields(former, "bursts__payload", "words") | fields(former, "o__payload", "last")
    return with_assumptions(former, instance("former_words", {"WORDS": BURST_WORDS, "BURSTS": BURSTS}, ports))


def _properties(config: CduConfig) -> list[Property]:
    return [
        Property(
            "burst_former",
            "bursts",
            "Every burst has the words that came, in order, is no longer than 16 words, and ends before the next boundary of"
            " 4 KiB.",
            lambda: device.of_component(BurstFormer(_BYTES, BURST_WORDS), "burst_former", config).probed(_PROBES),
            Sby(INDUCTION, 2, _harness),
        ),
        Property(
            "burst_former",
            "words",
            "Words leave in order, marked as the last of a burst where they closed one, and bursts in order with the number of"
            " their words: what leaves between two marks is as long as its burst says.",
            lambda: device.of_component(BurstFormer(_BYTES, BURST_WORDS), "burst_former", config),
            Sby(REACHABILITY, 0, _words_harness),
        ),
    ]


RECORD = Record(benches=(), streams=None, properties=_properties)
