"""The end of an AXI4-Stream that sends."""

from __future__ import annotations

from cdu.bus.axi_stream import AxiSender
from cdu_spec.config import CduConfig

from cdu_verif.blocks import Record
from cdu_verif.formal import device, ports
from cdu_verif.formal.proof import Property
from cdu_verif.formal.solver import REACHABILITY, Sby

#: Bytes of the words that are proven.
_BYTES = 4


def _properties(config: CduConfig) -> list[Property]:
    return [
        Property(
            "axi_sender",
            "ends",
            "After an abort no job ends before a word of a new one was accepted; each ends once, when its last word leaves;"
            " draining shows that the sink has still to get the end of a packet from before the abort.",
            lambda: device.of_component(AxiSender(_BYTES), "axi_sender", config),
            Sby(REACHABILITY, 0, ports.sender_harness),
        )
    ]


RECORD = Record(benches=(), streams=None, properties=_properties)
