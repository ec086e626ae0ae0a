"""The end of an AXI4-Stream that receives."""

from __future__ import annotations

from functools import partial

from cdu.bus.axi_stream import AxiReceiver
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
            "axi_receiver",
            "order",
            "Bytes leave once, in order; words have bytes, but for that of a packet without any; a packet ends with its last"
            " byte, also where TLAST comes behind it.",
            lambda: device.of_component(AxiReceiver(_BYTES), "axi_receiver", config),
            Sby(REACHABILITY, 0, partial(ports.receiver_harness, size=_BYTES)),
        )
    ]


RECORD = Record(benches=(), streams=None, properties=_properties)
