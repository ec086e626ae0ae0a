"""Record of the segment cutter, which makes bursts of segments of memory."""

from __future__ import annotations

from amaranth.utils import exact_log2
from cdu.dma.axi4 import BURST_WORDS
from cdu.dma.segment_cutter import SegmentCutter
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
_PROBES = {"held": 1, "address": MEMORY_ADDRESS_BITS, "left": SIZE_BITS, "pad": 10, "last": 1, "repeats": 1}


def _harness(cutter: BoundDevice) -> str:
    ports = fields(cutter, "segments__payload", "address", "bytes", "pad", "repeats", "last")
    ports |= fields(cutter, "parts__payload", "offset", "bytes", "pad", "repeats", "last")
    ports |= fields(cutter, "bursts__payload", "address", "words")
    return with_assumptions(cutter, instance("segment_cuts", {"PLACE": exact_log2(_BYTES), "MOST": BURST_WORDS}, ports))


def _properties(config: CduConfig) -> list[Property]:
    return [
        Property(
            "segment_cutter",
            "cuts",
            "The parts of a segment are its bytes, in order, the last one with its padding. The burst of a part is the words in"
            " which its bytes lie, at most 16, and ends before the next boundary of 4 KiB.",
            lambda: device.of_component(SegmentCutter(_BYTES), "segment_cutter", config).probed(_PROBES),
            Sby(INDUCTION, 2, _harness),
        )
    ]


RECORD = Record(benches=(), streams=None, properties=_properties)
