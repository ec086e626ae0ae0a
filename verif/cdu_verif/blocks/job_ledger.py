"""Record of the job ledger, which finds the errors and the end of every job."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from cdu.control.error_places import places
from cdu.control.job_ledger import JobLedger
from cdu_spec.config import CONFIGS, CduConfig
from cdu_spec.modes import Mode
from cdu_spec.register_types import Channel

from cdu_verif.blocks import Record
from cdu_verif.formal import device
from cdu_verif.formal.binding import instance, mask
from cdu_verif.formal.device import BoundDevice, harness
from cdu_verif.formal.proof import Property
from cdu_verif.formal.solver import INDUCTION, REACHABILITY, ProofKind, Sby

#: Entries of the ring in the proofs, and bits of the numbers that they compare.
_DEPTH, _NUMBER_BITS = 4, 3
#: Modes that come to every place, and modes one of which does not.
_ALIKE, _UNLIKE = (Mode.SFPR,), (Mode.SFPR, Mode.BYPASS)
#: The errors that are followed, by the place where they are found.
_FLAGS = {"input": "early_last", "front": "nonfinite", "scales": "bad_scale", "windows": "scale_surplus"}


def _config(modes: Sequence[Mode]) -> CduConfig:
    return CONFIGS["tiny"].override(modes=tuple(mode.label for mode in modes), completions=_DEPTH)


def _device(config: CduConfig) -> BoundDevice:
    bits = (_DEPTH - 1).bit_length()
    probes = dict.fromkeys(("oldest", "ending", "following", "result_turn"), bits + 1)
    probes |= {"due": _DEPTH, **{f"{flag}_column": _DEPTH for flag in _FLAGS.values()}}
    for name in _FLAGS:
        ends = (f"{name}_first", f"{_queue(config, name)}_last")
        probes |= {f"{name}_turn": bits + 1} if _counted(config, name) else dict.fromkeys(ends, bits)
    return device.of_component(JobLedger(config, Channel.COMPRESS), "job_ledger", config).probed(probes)


def _counted(config: CduConfig, name: str) -> bool:
    """Return whether all jobs come to a place."""
    return places(config, Channel.COMPRESS)[name].modes == config.built_modes


def _queue(config: CduConfig, name: str) -> str:
    """Return the first of the places to which the same jobs come."""
    found = places(config, Channel.COMPRESS)
    return next(other for other in found if found[other].modes == found[name].modes)


def _distance(config: CduConfig, name: str) -> str:
    """Return the number of jobs at a place, as the ledger counts them."""
    if name == "result" or _counted(config, name):
        return f"inner_following - inner_{name}_turn"
    return f"{{1'b0, inner_{_queue(config, name)}_last - inner_{name}_first}}"


def _harness(config: CduConfig, numbers: bool, proven: Sequence[str], found: BoundDevice) -> str:
    """Return a harness that proves the errors found at the places ``proven``; ``numbers``: and the numbers of jobs."""
    ports = {f"{place}_ends": found.field("findings", place, "ends") for place in _FLAGS}
    ports |= {f"{flag}_found": found.field("findings", place, flag) for place, flag in _FLAGS.items()}
    ports |= {flag: found.field("errors", flag) for flag in _FLAGS.values()}
    ports |= {f"{flag}_column": f"inner_{flag}_column" for flag in _FLAGS.values()}
    ports |= {f"{name}_distance": _distance(config, name) for name in ("result", *_FLAGS)}
    ports |= {name: f"inner_{name}" for name in ("due", "oldest", "ending", "following")}
    visited = places(config, Channel.COMPRESS)
    parameters = {
        "DEPTH": _DEPTH,
        "NUMBER_BITS": _NUMBER_BITS,
        "BUILT": mask(config.built_modes),
        "CODED": mask(visited["front"].modes),
        "SCALED": mask(visited["scales"].modes),
        "ALL_CODED": int(_counted(config, "front")),
        "ALL_SCALED": int(_counted(config, "scales")),
        "NUMBERS": int(numbers),
        "PLACES": mask(number for number, place in enumerate(_FLAGS) if place in proven),
    }
    return harness(found, instance("job_ledger_rules", parameters, ports | {"job": f"job[{_NUMBER_BITS - 1}:0]"}))


def _property(
    name: str, statement: str, modes: Sequence[Mode], kind: ProofKind, numbers: bool = False, proven: Sequence[str] = ()
) -> Property:
    config = _config(modes)
    text = partial(_harness, config, numbers, proven)
    return Property("job_ledger", name, statement, partial(_device, config), Sby(kind, 1, text))


def _properties(config: CduConfig) -> list[Property]:
    return [
        _property(
            "records",
            "Every job that is not forgotten has one record, in the order of the starts, and none is lost; in the record is"
            " what was found in the turn of the job, at four places, and nothing else: for all jobs and aborts.",
            _ALIKE,
            INDUCTION,
            proven=[*_FLAGS],
        ),
        _property(
            "numbers",
            "A record has the number of its job: of those started since the reset.",
            _ALIKE,
            REACHABILITY,
            numbers=True,
        ),
        _property(
            "turns",
            "The same of a place that some jobs do not come to.",
            _UNLIKE,
            REACHABILITY,
            proven=("front",),
        ),
    ]


RECORD = Record(benches=(), streams=None, properties=_properties)
