"""Record of the control: registers, jobs, interrupts, counters."""

from __future__ import annotations

from functools import partial

from cdu_spec.config import CduConfig
from cdu_spec.register_types import Channel

from cdu_verif.blocks import Record
from cdu_verif.cases.parameters import CODERS, EVERY, WITH_MX
from cdu_verif.formal import counting
from cdu_verif.formal.proof import Property
from cdu_verif.formal.properties import StreamFacts, probed
from cdu_verif.formal.solver import INDUCTION, Sby


def _properties(config: CduConfig) -> list[Property]:
    return [
        Property(
            "control",
            f"{channel.value}_counters",
            "Counters are what happened since they were cleared, in all bits, and are read as one number;"
            " those of waiting stop at their greatest value.",
            partial(probed, "control", config, counting.probes(channel)),
            Sby(INDUCTION, 3, partial(counting.counters_harness, channel)),
        )
        for channel in Channel
    ]


RECORD = Record(
    benches=["control", "control_registers", "control_errors", "control_counters"],
    quick=[{}, {"counter_bits": 32, "scale_bits": 24, **EVERY, **CODERS}, {"counter_bits": 0, **WITH_MX}],
    full=[EVERY, {"counter_bits": 32, **EVERY, **CODERS}],
    streams=StreamFacts(reachable=12, first_output=None),
    properties=_properties,
)
