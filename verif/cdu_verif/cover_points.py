"""Functional cover points of the whole unit: what must have happened at least once, by configuration."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from cdu_spec.bitstream import Mode
from cdu_spec.config import CduConfig
from cdu_spec.geometry import TILE_BLOCKS, TILE_COLUMNS

from cdu_verif.patterns import PATTERNS

#: Bins that were hit, or that there are, by cover point.
Bins = Mapping[str, Iterable[str]]

DIRECTIONS = ("compress", "decompress")
#: How the last word of a packed port may be filled.
FILLINGS = ("1 byte", "partial", "full")
#: Mistakes in a job's data, settings or use that the benches make.
ERRORS = (
    "input too short",
    "input too long",
    "TKEEP with holes",
    "scales too few",
    "scales too many",
    "infinity or NaN",
    "impossible job",
    "queue full",
    "write during a job",
    "no input for too long",
)


def bins(config: CduConfig) -> dict[str, list[str]]:
    """All bins that the benches of an array with this configuration have to hit."""
    modes = config.built_modes
    found = {
        "cp_mode": [setting(config, mode, direction) for mode in modes for direction in DIRECTIONS],
        "cp_mode_after_mode": [f"{after.label} after {before.label}" for before in modes for after in modes],
        "cp_value_word": [last_word(config, beats) for beats in range(1, config.port_beats + 1)],
        "cp_packed_word": [f"M = {config.packed_bytes}: {filling}" for filling in FILLINGS],
        "cp_error": [f"{error} ({direction})" for error in ERRORS for direction in DIRECTIONS if _applies(error, direction)],
        "cp_abort": [f"{moment}, {direction}" for moment in ("idle", "at work") for direction in DIRECTIONS],
        "cp_stall": list(PATTERNS),
    }
    if Mode.JPEG_ACT in modes:
        found["cp_width"] = [f"W mod {TILE_COLUMNS} = {rest}" for rest in range(TILE_COLUMNS)]
        found["cp_tile"] = [f"{blocks} blocks in the last tile" for blocks in range(1, TILE_BLOCKS + 1)]
    return found


def _applies(error: str, direction: str) -> bool:
    return error != "infinity or NaN" or direction == "compress"


def setting(config: CduConfig, mode: Mode, direction: str) -> str:
    """Bin of ``cp_mode``."""
    return f"{mode.label}, {direction}, N = {config.cdus}, {config.duplex} duplex"


def last_word(config: CduConfig, beats: int) -> str:
    """Bin of ``cp_value_word``: rows in the last word of a job of so many rows."""
    return f"P = {config.port_beats}: {(beats - 1) % config.port_beats + 1}"


def filling(config: CduConfig, payload_bytes: int) -> str:
    """Bin of ``cp_packed_word``: how a payload of so many bytes fills its last word."""
    rest = (payload_bytes - 1) % config.packed_bytes + 1
    name = FILLINGS[0] if rest == 1 else FILLINGS[2] if rest == config.packed_bytes else FILLINGS[1]
    return f"M = {config.packed_bytes}: {name}"


def merged(parts: Iterable[Bins]) -> dict[str, set[str]]:
    """The union."""
    found: dict[str, set[str]] = {}
    for part in parts:
        for point, names in part.items():
            found.setdefault(point, set()).update(names)
    return found
