"""Functional cover points of the whole unit: what must have happened at least once, by configuration."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from cdu_spec.bitstream import Mode
from cdu_spec.config import CduConfig
from cdu_spec.geometry import TILE_BLOCKS, TILE_COLUMNS
from cdu_spec.registers import ERROR_FLAGS, Channel

from cdu_verif.patterns import PATTERNS

#: Bins that were hit, or that there are, by cover point.
Bins = Mapping[str, Iterable[str]]

#: How the last word of a packed port may be filled.
FILLINGS = ("1 byte", "partial", "full")


def bins(config: CduConfig) -> dict[str, list[str]]:
    """All bins that the benches of an array with this configuration have to hit."""
    modes = config.built_modes
    found = {
        "cp_mode": [setting(config, mode, channel) for mode in modes for channel in Channel],
        "cp_mode_after_mode": [f"{after.label} after {before.label}" for before in modes for after in modes],
        "cp_value_word": [last_word(config, beats) for beats in range(1, config.port_beats + 1)],
        "cp_packed_word": [f"M = {config.packed_bytes}: {filling}" for filling in FILLINGS],
        "cp_error": [error(flag, channel) for channel in Channel for flag, _ in ERROR_FLAGS if _applies(flag, channel, config)],
        "cp_abort": [abort(channel, flushed) for channel in Channel for flushed in (False, True)],
        "cp_stall": list(PATTERNS),
    }
    if Mode.JPEG_ACT in modes:
        found["cp_width"] = [f"W mod {TILE_COLUMNS} = {rest}" for rest in range(TILE_COLUMNS)]
        found["cp_tile"] = [f"{blocks} blocks in the last tile" for blocks in range(1, TILE_BLOCKS + 1)]
    return found


def _applies(flag: str, channel: Channel, config: CduConfig) -> bool:
    """Whether a channel of such a unit can raise an error."""
    if flag == "bad_length":
        return channel is Channel.DECOMPRESS
    if flag == "nonfinite":
        return channel is Channel.COMPRESS
    if flag == "busy_write":
        return Mode.JPEG_ACT in config.built_modes
    if flag in ("scale_missing", "scale_surplus"):
        return any(mode.has_scales for mode in config.built_modes)
    return True


def error(flag: str, channel: Channel) -> str:
    """Bin of ``cp_error``: a bit of the register ERRORS."""
    return f"{channel.value}: {flag}"


def abort(channel: Channel, flushed: bool) -> str:
    """Bin of ``cp_abort``."""
    return f"{channel.value}: {'with' if flushed else 'without'} flush"


def setting(config: CduConfig, mode: Mode, channel: Channel) -> str:
    """Bin of ``cp_mode``."""
    return f"{mode.label}, {channel.value}, N = {config.cdus}, {config.duplex} duplex"


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
