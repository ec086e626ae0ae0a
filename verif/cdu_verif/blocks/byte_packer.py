"""Record of the byte packer, which closes the gaps between words of any count."""

from __future__ import annotations

from functools import partial

from cdu.parts.byte_packer import BytePacker
from cdu_spec.config import CduConfig

from cdu_verif.blocks import Record
from cdu_verif.formal import device, order
from cdu_verif.formal.proof import Property
from cdu_verif.formal.solver import REACHABILITY, Sby

#: Bytes of a word in the proofs.
_BYTES = 4


def _properties(config: CduConfig) -> list[Property]:
    return [
        Property(
            "byte_packer",
            "order",
            "Bytes of words of any count leave once, in order, each in its own job; words are full but for the last one of a"
            " job.",
            lambda: device.of_component(BytePacker(_BYTES), "byte_packer", config),
            Sby(REACHABILITY, 0, partial(order.width_harness, i_bytes=_BYTES, o_bytes=_BYTES, partial=True)),
        )
    ]


RECORD = Record(benches=(), streams=None, properties=_properties)
