"""Names of units: their letters, and their endings for differences from a configuration."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from typing import Any

from cdu_spec.config_rules import ConfigError, written

#: Longest name; files and modules add a few characters to it.
LONGEST_NAME = 64
#: Name of the files of the DMA engine's driver in C, beside those of the unit.
DMA_DRIVER = "cdu_dma"
#: Characters of the checksum in a shortened name.
_CHECKSUM = 12


def require_name(name: Any) -> None:
    """Raise ConfigError unless files and modules of a unit can have this name."""
    text = isinstance(name, str) and name.isidentifier() and name.isascii()
    if not text or len(name) > LONGEST_NAME:
        raise ConfigError(
            f"name = {written(name)} is not allowed: use letters, digits and _, not starting with a digit, "
            f"{LONGEST_NAME} at most"
        )
    if name.lower() == DMA_DRIVER:
        raise ConfigError(
            f"name = {written(name)} is not allowed, for the unit's header would replace the driver's {DMA_DRIVER}.h: "
            "use another name"
        )


def with_changes(name: str, changed: Mapping[str, Any]) -> str:
    """Return a name with parameters and their values behind it, or with a checksum of them if it would be too long."""
    texts = [f"{key}_{'_'.join(value) if isinstance(value, tuple) else value}" for key, value in changed.items()]
    said = re.sub(r"\W", "_", "_".join([name, *texts]))
    if len(said) <= LONGEST_NAME:
        return said
    checksum = hashlib.sha256(json.dumps(changed).encode()).hexdigest()[:_CHECKSUM]
    return f"{name[: LONGEST_NAME - _CHECKSUM - 1]}_{checksum}"
