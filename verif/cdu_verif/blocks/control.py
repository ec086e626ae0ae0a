"""What a driver sees: registers, jobs, interrupts, counters."""

from __future__ import annotations

from cdu_verif.blocks import Record
from cdu_verif.cases.parameters import CODERS, EVERY, WITH_MX
from cdu_verif.formal.properties import StreamFacts

RECORD = Record(
    benches=["control", "control_registers", "control_errors", "control_counters"],
    quick=[{}, {"counter_bits": 32, "scale_bits": 24, **EVERY, **CODERS}, {"counter_bits": 0, **WITH_MX}],
    full=[EVERY, {"counter_bits": 32, **EVERY, **CODERS}],
    streams=StreamFacts(reachable=12, first_output=None),
)
