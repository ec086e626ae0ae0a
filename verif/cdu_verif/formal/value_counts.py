"""Proofs of the counters of a job at either end of the value side, most of whose bits no simulation is long enough to reach."""

from __future__ import annotations

from collections.abc import Sequence

from amaranth.lib.data import StructLayout
from cdu.parts.streams import BEATS_BITS
from cdu.values.window_plan import RUN_BITS, WindowPlan, window_places
from cdu.words import BlockTag, Job
from cdu_spec.config import CduConfig
from cdu_spec.geometry import TILE_BLOCKS
from cdu_spec.modes import Mode

from cdu_verif.formal.binding import instance, mask
from cdu_verif.formal.device import BoundDevice
from cdu_verif.formal.stream_rules import with_assumptions

_WINDOWS, _TILES = "feeder.windows", "shaper"
#: Fields of a job that the counters depend on.
_JOB_FIELDS = ("mode", "beats", "row_beats", "channel_rows")


def probes(config: CduConfig) -> dict[str, int]:
    """Return the signals of an end that the harness observes, with their bits."""
    job = {"job__ready": 1, "job__payload": Job().size}
    windows = {
        **dict.fromkeys(("go", "complete", "final"), 1),
        "room": window_places(config).bit_length(),
        "rest": RUN_BITS,
        "rows_left": BEATS_BITS,
        "later_beats": BEATS_BITS + 1,
        "plan": WindowPlan(config).size,
    }
    tiles = {
        **dict.fromkeys(("job__valid", "busy", "step", "wide", "many"), 1),
        "shape__blocks": TILE_BLOCKS.bit_length(),
        "row": BEATS_BITS,
        "left": BEATS_BITS,
        "beats": BEATS_BITS + 1,
        "tag": BlockTag().size,
    }
    found = {f"{_WINDOWS}.{name}": bits for name, bits in (job | windows).items()}
    if config.has_tiles:
        found |= {f"{_TILES}.{name}": bits for name, bits in (job | tiles).items()}
    return found


def counts_harness(device: BoundDevice, config: CduConfig, modes: Sequence[Mode]) -> str:
    """Return a harness for the counters of the windows of scales and of the tiles; ``modes`` are those of the jobs."""
    blocks = mask(mode for mode in modes if mode.has_zvc or mode.in_tiles)
    tiles = mask(mode for mode in modes if mode.in_tiles)
    plan = WindowPlan(config)
    ports = {name: _signal(_WINDOWS, name) for name in ("go", "complete", "room", "rest", "rows_left", "later_beats")}
    ports |= {name: _field(_WINDOWS, "plan", plan, name) for name in ("row_places", "row_period", "window_beats")}
    parameters = {"PORT_BEATS": config.port_beats, "PLACES": window_places(config), "STRIPS": tiles, "BLOCKS": blocks}
    body = instance(
        "window_counts",
        parameters,
        _job(_WINDOWS, *_JOB_FIELDS) | ports | {"is_final": _signal(_WINDOWS, "final")},
    )
    if config.has_tiles:
        names = ("busy", "step", "wide", "many", "row", "left", "beats")
        ports = {name: _signal(_TILES, name) for name in names}
        ports |= {"blocks": _signal(_TILES, "shape__blocks"), "job_valid": _signal(_TILES, "job__valid")}
        body += instance(
            "tile_counts",
            {"MODES": mask(modes), "TILES": tiles, "BLOCKS": blocks},
            _job(_TILES, *_JOB_FIELDS[:-1]) | ports | {"mode": _field(_TILES, "tag", BlockTag(), "mode")},
        )
    return with_assumptions(device, body)


def _signal(part: str, name: str) -> str:
    """Return the wire of a probe."""
    return f"inner_{part.replace('.', '__')}__{name}"


def _field(part: str, name: str, layout: StructLayout, path: str) -> str:
    """Return a field of a probe."""
    field = layout[path]
    return f"{_signal(part, name)}[{field.offset} +: {field.width}]"


def _job(part: str, *names: str) -> dict[str, str]:
    """Return ports with fields of the job that a part takes, with ready."""
    found = {f"job_{name}": _field(part, "job__payload", Job(), name) for name in names}
    return {"job_ready": _signal(part, "job__ready")} | found
