"""Declares how the reader of descriptors is verified."""

from __future__ import annotations

from cdu.dma.descriptor_fetch import DescriptorFetch
from cdu_spec.config import CduConfig
from cdu_spec.dma import DESCRIPTOR_BYTES

from cdu_verif.blocks import Record
from cdu_verif.formal import device
from cdu_verif.formal.binding import fields, instance
from cdu_verif.formal.device import BoundDevice
from cdu_verif.formal.proof import Property
from cdu_verif.formal.solver import INDUCTION, Sby
from cdu_verif.formal.stream_rules import with_assumptions

#: Bytes of the words of memory that are proven.
_BYTES = 64


def _harness(fetch: BoundDevice) -> str:
    ports = fields(fetch, "bursts__payload", "address", "words") | fields(fetch, "o__payload", "number")
    return with_assumptions(fetch, instance("rung_descriptors", {"BYTES": DESCRIPTOR_BYTES, "WORD_BYTES": _BYTES}, ports))


def _properties(config: CduConfig) -> list[Property]:
    return [
        Property(
            "descriptor_fetch",
            "rung",
            "A descriptor is read only when TAIL was ahead of it, and not more than the places of the ring ahead of HEAD: each"
            " in its turn, from its place in the ring, and from no address of more than 40 bits.",
            lambda: device.of_component(DescriptorFetch(_BYTES), "descriptor_fetch", config),
            Sby(INDUCTION, 4, _harness),
        )
    ]


RECORD = Record(benches=[], streams=None, properties=_properties)
