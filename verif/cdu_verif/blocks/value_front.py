"""The end of the value side that compresses."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from cdu_spec.config import CduConfig
from cdu_spec.modes import Mode

from cdu_verif.blocks import Record
from cdu_verif.cases.parameters import VALUE_SIDE, VALUE_SIDE_FULL, WITH_MX
from cdu_verif.formal import progress, value_counts
from cdu_verif.formal.binding import fields, instance, mask
from cdu_verif.formal.device import BoundDevice
from cdu_verif.formal.proof import Property
from cdu_verif.formal.properties import block_device, moves, probed
from cdu_verif.formal.solver import BOUNDED, INDUCTION, Sby
from cdu_verif.formal.stream_rules import with_assumptions

if TYPE_CHECKING:
    from cdu_verif.cases.case import Cases


def _cases() -> Cases:
    from cdu_verif.cases.value_side import VALUE_FRONT

    return VALUE_FRONT


_COUNTS = (
    "What is left of a job, of a row and of the rows of a scale goes down by what a tile or a window of scales takes, in all of"
    " its bits."
)


def properties_of_jobs(block: str, config: CduConfig) -> list[Property]:
    """Return the properties of either end of the value side: progress, counters, and that words belong to their jobs."""
    cycles, reach = 16, 30
    made = partial(block_device, block, config)
    progresses = Sby(BOUNDED, reach, partial(progress.job_progress_harness, cycles=cycles))
    tagged = block == "value_front"
    modes = [mode for mode in config.built_modes if mode is not Mode.BYPASS and (mode is not Mode.MX or not tagged)]
    parameters = {
        "COUNT_BITS": config.port_beats.bit_length(),
        "MODES": mask(modes),
        "BLOCKS": mask(mode for mode in modes if mode.whole_beats > 1),
        "TILES": mask(mode for mode in modes if mode.in_tiles),
        "TAGGED": int(tagged),
    }

    def jobs(device: BoundDevice) -> str:
        ports = fields(device, "job__payload", "mode", "bank", "beats", "row_beats", "channel_rows")
        port = "to_alignment" if tagged else "o"
        names = ("count", "ends", "tag.mode", "tag.bank", "tag.last") if tagged else ("count", "last")
        words = {name.replace(port, "o"): signal for name, signal in fields(device, f"{port}__payload", *names).items()}
        for stream, name in (("job", "job"), ("o", port)):
            ports |= {f"{stream}_{role}": f"{name}__{role}" for role in ("valid", "ready")}
        untagged = {"o_ends": "1'd1", "o_mode": "4'd0", "o_bank": "1'd0"}
        return with_assumptions(device, instance("jobs_of_values", parameters, untagged | ports | words), resets=False)

    statement = "Jobs have as many beats as they say, in order, whatever the input" + (
        ", and words the mode and the bank of their jobs." if tagged else "."
    )
    counted = partial(probed, block, config, value_counts.probes(config))
    counts = partial(value_counts.counts_harness, config=config, modes=modes)
    found = [Property(block, "counts", _COUNTS, counted, Sby(INDUCTION, 1, counts))]
    return [
        *(found if any(mode.has_scales for mode in modes) else []),
        Property(block, "progress", moves("a transfer happens", cycles), made, progresses),
        Property(block, "jobs", statement, made, Sby(BOUNDED, 14, jobs)),
    ]


RECORD = Record(
    cases=_cases,
    benches=["blocks", "broken_jobs"],
    quick=[*VALUE_SIDE, {"scale_bits": 24, **WITH_MX}],
    full=[*VALUE_SIDE_FULL, WITH_MX, {"cdus": 8, **WITH_MX}],
    properties=partial(properties_of_jobs, "value_front"),
)
