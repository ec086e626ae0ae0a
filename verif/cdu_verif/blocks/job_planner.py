"""Declares how the checker of descriptors is verified."""

from __future__ import annotations

from cdu.dma.job_planner import JobPlanner
from cdu_spec.bitstream import RECIPROCAL_BYTES
from cdu_spec.config import CduConfig
from cdu_spec.dma import COMPLETION_BYTES
from cdu_spec.modes import Mode
from cdu_spec.register_types import Channel

from cdu_verif.blocks import Record
from cdu_verif.formal import device
from cdu_verif.formal.binding import fields, instance
from cdu_verif.formal.device import BoundDevice
from cdu_verif.formal.proof import Property
from cdu_verif.formal.solver import INDUCTION, Sby
from cdu_verif.formal.stream_rules import with_assumptions

_PROBES = {"fsm_state": 4, "multiplier.busy": 1}
_PARTS = ("tensor", "payload", "scales", "completion", "payload_bytes", "c")


def _harness(planner: BoundDevice) -> str:
    described = (f"fetched.descriptor.{name}" for name in _PARTS)
    ports = fields(planner, "o__payload", *described, "fetched.failed", "nowhere", "errors")
    mode = planner.field("o__payload", "fetched", "descriptor", "mode")
    sizes = {"SCALE_BYTES": RECIPROCAL_BYTES, "RECORD_BYTES": COMPLETION_BYTES}
    kinds = {"scaled": f"{mode} == 8'd{int(Mode.SFPR)}", "flat": "1'b0"}
    return with_assumptions(planner, instance("places_in_memory", sizes, ports | kinds))


def _properties(config: CduConfig) -> list[Property]:
    narrow = config.adapted(modes=("sfpr", "brc"), coders=("zvc",))
    return [
        Property(
            "job_planner",
            "places",
            "Of a job that is run the payload, the scales and the first value of the tensor have addresses of 40 bits; so has"
            " every record that is written.",
            lambda: device.of_component(JobPlanner(narrow, Channel.COMPRESS), "job_planner", narrow).probed(_PROBES),
            Sby(INDUCTION, 3, _harness),
        )
    ]


RECORD = Record(benches=[], streams=None, properties=_properties)
