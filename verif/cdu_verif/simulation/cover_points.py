"""Functional cover points of the whole unit: events that must occur at least once, by configuration."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from cdu_spec.channel_block import ERROR_FLAGS
from cdu_spec.config import CduConfig
from cdu_spec.dma import RING_REGISTERS
from cdu_spec.geometry import TILE_BLOCKS, TILE_COLUMNS
from cdu_spec.modes import Coder, Mode
from cdu_spec.reconstruction import MAX_POINT
from cdu_spec.register_types import Channel

from cdu_verif.simulation.patterns import PATTERNS

#: Bins, hit or existing, by cover point.
Bins = Mapping[str, Iterable[str]]

#: Fillings of the last word of a packed port.
FILLINGS = ("1 byte", "partial", "full")
#: States of the output when jobs are aborted, and causes of an abort.
OUTPUTS = ("nothing", "a word inside a packet", "the last word of a packet")
CAUSES = ("CONTROL", "WATCHDOG")
#: Places in a packet of transfers without bytes; transfers that are not full.
EMPTY = ("empty before", "empty inside", "empty behind")
PARTIAL = "partial"
#: First scales to arrive for two jobs that are started together and name their sources.
SCALE_ORDERS = ("scales of the first job", "scales of the second job at the port", "scales of the second job in registers")
#: Errors of a host of a DMA engine.
TAIL_AHEAD, TAIL_BEHIND = "TAIL too far ahead", "TAIL behind"
BEYOND = "a place of the ring beyond the last address"
ABORT, OWNED = "commands to the unit", "a register of the unit"
#: States left by a host that restarts and opens a new ring.
RESTARTS = ("back: running", "back: stopping", "back: stopping, then on", "back: TAIL at random", "back: opened carelessly")
RESET, NEVER_STARTED = "back: reset", "back: never started"


def bins(config: CduConfig) -> dict[str, list[str]]:
    """Return all bins that the benches of an array with this configuration must hit."""
    modes = config.built_modes
    found = {
        "cp_mode": [setting(config, mode, channel) for mode in modes for channel in Channel],
        "cp_mode_after_mode": [f"{after.label} after {before.label}" for before in modes for after in modes],
        "cp_value_word": [last_word(config, beats) for beats in range(1, config.port_beats + 1)],
        "cp_packed_word": [f"M = {config.packed_bytes}: {filling}" for filling in FILLINGS],
        "cp_error": [error(flag, channel) for channel in Channel for flag, _ in ERROR_FLAGS if _applies(flag, channel, config)],
        "cp_abort": [abort(channel, flushed) for channel in Channel for flushed in (False, True)],
        "cp_stall": list(PATTERNS),
        "cp_abort_output": [waiting(channel, output, cause) for channel in Channel for output in OUTPUTS for cause in CAUSES],
        "cp_transfer": [transfer(channel, kind) for channel in Channel for kind in _transfers(channel)],
    }
    if config.has_gmc:
        found["cp_coder"] = [coding(coder, channel) for coder in config.built_coders for channel in Channel]
        found["cp_point"] = [point(eighths) for eighths in range(MAX_POINT + 1)]
    if any(mode.has_scales for mode in modes):
        found["cp_transfer"] += [transfer(channel, f"{kind} scales") for channel in Channel for kind in EMPTY]
        found["cp_scale_order"] = [scale_order(channel, order) for channel in Channel for order in SCALE_ORDERS]
        found["cp_scale"] = [scale(channel, allowed) for channel in Channel for allowed in (False, True)]
    if config.has_ranges:
        found["cp_head"] = [head(allowed) for allowed in (False, True)]
    if Mode.JPEG_ACT in modes:
        found["cp_width"] = [f"W mod {TILE_COLUMNS} = {rest}" for rest in range(TILE_COLUMNS)]
        found["cp_tile"] = [f"{blocks} blocks in the last tile" for blocks in range(1, TILE_BLOCKS + 1)]
    return found


def engine_bins(config: CduConfig) -> dict[str, list[str]]:
    """Return all bins that the benches of a DMA engine must hit."""
    rings = [name(register) for register in RING_REGISTERS for name in (bad_number, moved)]
    events = (TAIL_AHEAD, TAIL_BEHIND, BEYOND, ABORT, OWNED, *rings, *RESTARTS, RESET, NEVER_STARTED)
    return {"cp_host": [host(channel, event) for channel in Channel for event in events]}


def host(channel: Channel, event: str) -> str:
    """Return the bin of ``cp_host`` for an event caused by a host in a direction of the engine."""
    return f"{channel.value}: {event}"


def bad_number(register: str) -> str:
    """Return the event of ``cp_host`` for a number that a register of the ring does not take."""
    return f"{register} with a number that it does not take"


def moved(register: str) -> str:
    """Return the event of ``cp_host`` for a write to a register of a running ring."""
    return f"{register} while the ring runs"


def _transfers(channel: Channel) -> tuple[str, ...]:
    return EMPTY if channel is Channel.COMPRESS else (*EMPTY, PARTIAL)


def _applies(flag: str, channel: Channel, config: CduConfig) -> bool:
    """Return whether a channel of a unit with this configuration can raise an error."""
    if flag == "bad_length":
        return channel is Channel.DECOMPRESS
    if flag == "nonfinite":
        return channel is Channel.COMPRESS
    if flag == "busy_write":
        return config.has_dct
    if flag in ("scale_missing", "scale_surplus", "bad_scale", "scale_source"):
        return any(mode.has_scales for mode in config.built_modes)
    if flag == "bad_head":
        return channel is Channel.DECOMPRESS and config.has_ranges
    if flag == "bad_crc":
        return channel is Channel.DECOMPRESS and bool(config.payload_crc)
    if flag == "payload_length":
        return channel is Channel.DECOMPRESS and any(mode.has_zvc for mode in config.built_modes)
    return True


def error(flag: str, channel: Channel) -> str:
    """Return the bin of ``cp_error`` for a bit of the register ERRORS."""
    return f"{channel.value}: {flag}"


def waiting(channel: Channel, output: str, cause: str) -> str:
    """Return the bin of ``cp_abort_output`` for one of OUTPUTS at an abort by one of CAUSES."""
    return f"{channel.value}: {output}, {cause}"


def transfer(channel: Channel, kind: str) -> str:
    """Return the bin of ``cp_transfer``."""
    return f"{channel.value}: {kind}"


def scale_order(channel: Channel, order: str) -> str:
    """Return the bin of ``cp_scale_order`` for one of SCALE_ORDERS."""
    return f"{channel.value}: {order}"


def scale(channel: Channel, allowed: bool) -> str:
    """Return the bin of ``cp_scale`` for a bit pattern that is allowed, or not."""
    return f"{channel.value}: {'a scale' if allowed else 'no scale'}"


def head(allowed: bool) -> str:
    """Return the bin of ``cp_head`` for bits at the beginning of a block that are allowed, or not."""
    return "a range" if allowed else "no range"


def abort(channel: Channel, flushed: bool) -> str:
    """Return the bin of ``cp_abort``."""
    return f"{channel.value}: {'with' if flushed else 'without'} flush"


def setting(config: CduConfig, mode: Mode, channel: Channel) -> str:
    """Return the bin of ``cp_mode``."""
    return f"{mode.label}, {channel.value}, N = {config.cdus}, {config.duplex} duplex"


def coding(coder: Coder, channel: Channel) -> str:
    """Return the bin of ``cp_coder`` for a job of mode jpeg-act."""
    return f"{coder.label}, {channel.value}"


def point(eighths: int) -> str:
    """Return the bin of ``cp_point`` for the reconstruction point of a job that is decompressed."""
    return f"{eighths} eighths of a step"


def last_word(config: CduConfig, beats: int) -> str:
    """Return the bin of ``cp_value_word`` for the rows in the last word of a job of ``beats`` rows."""
    return f"P = {config.port_beats}: {(beats - 1) % config.port_beats + 1}"


def filling(config: CduConfig, payload_bytes: int) -> str:
    """Return the bin of ``cp_packed_word`` for the filling of a payload's last word."""
    rest = (payload_bytes - 1) % config.packed_bytes + 1
    name = FILLINGS[0] if rest == 1 else FILLINGS[2] if rest == config.packed_bytes else FILLINGS[1]
    return f"M = {config.packed_bytes}: {name}"


def merged(parts: Iterable[Bins]) -> dict[str, set[str]]:
    """Return the union of bins."""
    found: dict[str, set[str]] = {}
    for part in parts:
        for point, names in part.items():
            found.setdefault(point, set()).update(names)
    return found
