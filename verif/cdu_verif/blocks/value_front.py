"""The end of the value side that compresses."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from cdu_spec.config import CduConfig
from cdu_spec.modes import Mode

from cdu_verif.blocks import Record
from cdu_verif.cases.parameters import VALUE_SIDE, VALUE_SIDE_FULL, WITH_MX
from cdu_verif.formal import progress
from cdu_verif.formal.binding import fields, instance, mask
from cdu_verif.formal.device import BoundDevice
from cdu_verif.formal.proof import Property
from cdu_verif.formal.properties import block_device, moves
from cdu_verif.formal.solver import BOUNDED, Sby
from cdu_verif.formal.stream_rules import with_assumptions

if TYPE_CHECKING:
    from cdu_verif.cases.case import Cases


def _cases() -> Cases:
    from cdu_verif.cases.value_side import VALUE_FRONT

    return VALUE_FRONT


def progress_of_jobs(block: str, config: CduConfig) -> list[Property]:
    """Some stream of either end transfers, in the cycles from reset that the proof reaches."""
    cycles, reach = 16, 30
    text = partial(progress.job_progress_harness, cycles=cycles)
    made = partial(block_device, block, config)
    return [Property(block, "progress", moves("a transfer happens", cycles), made, Sby(BOUNDED, reach, text))]


def _properties(config: CduConfig) -> list[Property]:
    """Return progress, and that words belong to their jobs."""
    modes = [mode for mode in config.built_modes if mode not in (Mode.BYPASS, Mode.MX)]
    parameters = {
        "COUNT_BITS": config.port_beats.bit_length(),
        "MODES": mask(modes),
        "BLOCKS": mask(mode for mode in modes if mode.has_zvc),
        "TILES": mask(mode for mode in modes if mode.in_tiles),
    }

    def text(device: BoundDevice) -> str:
        ports = fields(device, "job__payload", "mode", "bank", "beats", "row_beats", "channel_rows")
        ports |= {f"job_{role}": f"job__{role}" for role in ("valid", "ready")}
        words = fields(device, "to_alignment__payload", "count", "ends", "tag.mode", "tag.bank", "tag.last")
        words |= {f"to_alignment_{role}": f"to_alignment__{role}" for role in ("valid", "ready")}
        ports |= {name.replace("to_alignment", "o"): signal for name, signal in words.items()}
        return with_assumptions(device, instance("jobs_of_values", parameters, ports), resets=False)

    statement = (
        "Words have the mode and the bank of their jobs, in order, and jobs as many beats as they say, whatever the input."
    )
    made = partial(block_device, "value_front", config)
    return [
        *progress_of_jobs("value_front", config),
        Property("value_front", "jobs", statement, made, Sby(BOUNDED, 14, text)),
    ]


RECORD = Record(
    cases=_cases,
    benches=["blocks", "broken_jobs"],
    quick=[*VALUE_SIDE, {"scale_bits": 24, **WITH_MX}],
    full=[*VALUE_SIDE_FULL, WITH_MX, {"cdus": 8, **WITH_MX}],
    properties=_properties,
)
