"""What finds out what becomes of every job."""

from __future__ import annotations

from cdu.control.job_ledger import JobLedger
from cdu.control.places import places
from cdu_spec.bitstream import Mode
from cdu_spec.config import CONFIGS, CduConfig
from cdu_spec.registers import JOB_NUMBER_BITS, Channel

from cdu_verif.blocks import Record
from cdu_verif.formal import device
from cdu_verif.formal.binding import instance, mask
from cdu_verif.formal.device import Device, harness
from cdu_verif.formal.proof import Property
from cdu_verif.formal.solver import REACHABILITY, Sby

#: Entries of the ring that is proven, and the modes: some that come to every place, some that do not.
_DEPTH = 4
_MODES = (Mode.SFPR, Mode.BRC, Mode.BYPASS)
#: The errors that are followed, by the place where they are found.
_FLAGS = {"input": "early_last", "front": "nonfinite", "scales": "bad_scale", "windows": "scale_surplus"}
_CONFIG = CONFIGS["tiny"].override(modes=tuple(mode.label for mode in _MODES), completions=_DEPTH)


def _harness(found: Device) -> str:
    ports = {f"{place}_ends": found.field("findings", place, "ends") for place in _FLAGS}
    ports |= {f"{flag}_found": found.field("findings", place, flag) for place, flag in _FLAGS.items()}
    ports |= {flag: found.field("errors", flag) for flag in _FLAGS.values()}
    visited = places(_CONFIG, Channel.COMPRESS)
    sets = {name: mask(visited[place].modes) for name, place in (("CODED", "front"), ("SCALED", "scales"))}
    return harness(found, instance("job_ledger_rules", {"DEPTH": _DEPTH, "NUMBER_BITS": JOB_NUMBER_BITS, **sets}, ports))


def _properties(config: CduConfig) -> list[Property]:
    return [
        Property(
            "job_ledger",
            "records",
            "Every job that is not forgotten has one record, in the order of the starts, with its number and with what was"
            " found of it at each place, and no more; none is lost: for all jobs, aborts and places.",
            lambda: device.of_component(JobLedger(_CONFIG, Channel.COMPRESS), "job_ledger", config),
            Sby(REACHABILITY, 0, _harness),
        )
    ]


RECORD = Record(benches=(), streams=None, properties=_properties)
