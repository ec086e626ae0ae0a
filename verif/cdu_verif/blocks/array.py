"""The whole unit, behind its ports."""

from __future__ import annotations

from functools import partial

from cdu_spec.config import CduConfig

from cdu_verif.blocks import Record
from cdu_verif.cases.parameters import CODERS, EVERY, PIPELINED, WITH_MX
from cdu_verif.formal.device import BoundDevice
from cdu_verif.formal.properties import StreamFacts, probed
from cdu_verif.formal.stream_rules import stream_harness
from cdu_verif.simulation import cover_points

#: While an access is worked on no answer to the one before is waiting.
_ANSWER_FREE = "~(inner_control__axi__access__active & (inner_control__axi__access__write ? s_axil_bvalid : s_axil_rvalid))"


def _with_answers(config: CduConfig) -> BoundDevice:
    """The unit with the signals of :data:`_ANSWER_FREE`."""
    return probed("array", config, {f"control.axi.access__{name}": 1 for name in ("active", "write")})


RECORD = Record(
    benches=[
        "array",
        "array_bits",
        "array_completions",
        "array_crc",
        "array_errors",
        "array_promises",
        "array_rate",
        "register_model",
    ],
    quick=[
        {},
        {"cdus": 2, "duplex": "half", "value_format": "bf16", "completions": 4, **EVERY},
        {
            **{"cdus": 3, "value_format": "fp16", "modes": (*EVERY["modes"], "mx"), **CODERS},
            **{"reset_active": "low", "reset_kind": "async", "payload_crc": 1, "completions": 8},
        },
        {"cdus": 8, "packed_port_bits": 1024, **PIPELINED},
    ],
    full=[
        {"cdus": 2, "reset_active": "low", "reset_kind": "async", "payload_crc": 1, "completions": 8, **CODERS},
        {"cdus": 3, "value_format": "fp16", "modes": (*EVERY["modes"], "mx")},
        *({"cdus": 4, "packed_port_bits": 1024}, PIPELINED),
        *({"cdus": cdus, "duplex": duplex} for cdus in (1, 2, 3, 4, 8) for duplex in ("full", "half")),
        *({"cdus": cdus, **EVERY} for cdus in (1, 4, 8)),
        *({"cdus": cdus, "duplex": duplex, **CODERS} for cdus, duplex in ((1, "half"), (3, "full"), (8, "full"))),
        {"cdus": 4, **CODERS, **EVERY},
        {"cdus": 4, "coders": ("gmc",), "modes": ("jpeg-act",), **PIPELINED},
        *({"modes": (mode,)} for mode in EVERY["modes"][-5:]),
        {"cdus": 8, "packed_port_bits": 1024, "value_format": "bf16"},
        {"cdus": 4, "value_port_bits": 512, "packed_port_bits": 128},
        {"cdus": 2, "value_format": "fp16", "scale_bits": 11, "rounding": "trunc"},
        {"modes": ("jpeg-act",), "cdus": 2},
        *(
            {"cdus": cdus, "duplex": duplex, "payload_crc": 1, "completions": 4 * cdus, **EVERY}
            for cdus, duplex in ((1, "half"), (8, "full"))
        ),
        {"modes": ("sfpr", "brc"), "reset_active": "low"},
        *({"duplex": "half", "completions": 4, **WITH_MX}, {"cdus": 8, **WITH_MX}),
        {"cdus": 2, "modes": (*EVERY["modes"], "mx"), "completions": 8, **CODERS},
        *({"cdus": cdus, "duplex": duplex, **EVERY, **PIPELINED} for cdus, duplex in ((2, "half"), (4, "full"))),
    ],
    bins=cover_points.bins,
    streams=StreamFacts(held=_with_answers, rules=partial(stream_harness, helper=_ANSWER_FREE), first_output=None),
)
