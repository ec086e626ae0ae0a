"""Values that parameters of a configuration may have, and the error for others."""

from __future__ import annotations

import json
import reprlib
from collections.abc import Sequence
from typing import Any

from cdu_tools.errors import UserError

#: Greatest number of CDUs in an array.
MAX_CDUS = 8
#: Kinds of duplex.
DUPLEX = ("full", "half")
#: Rows of 8 values that a word of an uncompressed port may hold.
PORT_BEATS = (1, 2, 4, 8)
#: Widths of a packed port.
PACKED_PORT_BITS = (128, 256, 512, 1024)
#: Allowed widths of counters of cycles, values and bytes; 0 leaves the counters out.
COUNTER_BITS = (0, 32, 64)
#: Allowed widths of the memory port of a DMA engine; 0 builds no engine.
DMA_BITS = (0, 64, 128, 256, 512)
#: Allowed numbers of words that a direction of a DMA engine may have requested from memory.
DMA_WORDS = (64, 128, 256, 512)
#: Allowed numbers of completion records per direction; 0 leaves records out.
COMPLETIONS = (0, 4, 8, 16, 32)
#: Jobs of a direction that a DMA engine has in the unit at a time.
DMA_JOBS = 2
#: Ports that may have their own clocks (:data:`~cdu_spec.ports.CLOCKED_PORTS`).
OWN_CLOCKS = ("registers", "values", "packed")
#: Ports of the reset by its active level: AXI's own name where it is low.
RESET_PORTS = {"high": "rst", "low": "aresetn"}
#: Moment at which registers take the reset: at a clock edge, or at once.
RESET_KINDS = ("sync", "async")


class ConfigError(UserError, ValueError):
    """A configuration that cannot be built; the message says what is allowed."""


def require_one_of(name: str, value: Any, allowed: Any) -> None:
    """Raise ConfigError unless the value of a parameter is one of those in a range or a sequence."""
    if value not in allowed:
        span = isinstance(allowed, range)
        choice = f"{allowed.start} to {allowed.stop - 1}" if span else ", ".join(map(str, allowed))
        raise ConfigError(f"{name} = {written(value)} is not allowed: use {choice}")


def each_once(name: str, value: Any, allowed: Sequence[str]) -> tuple[str, ...]:
    """Return the labels that a parameter lists, in the allowed order; ConfigError unless each is there once."""
    listed = isinstance(value, (tuple, list)) and all(label in allowed for label in value)
    if not listed or not value or len(set(value)) < len(value):
        raise ConfigError(f"{name} = {written(value)} is not allowed: use one or more of {', '.join(allowed)}, each once")
    return tuple(label for label in allowed if label in value)


def written(value: Any) -> str:
    """Return a value as a command line or a TOML file has it: items of lists with commas, texts with quotes, none too long."""
    if not isinstance(value, (tuple, list)):
        return reprlib.repr(value)
    plain = all(isinstance(item, str) for item in value)
    return (",".join(value) if plain else json.dumps(value, default=str)) or repr("")
