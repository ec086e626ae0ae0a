"""What benchmarks/configurations.py measured of the named configurations."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any


def measured_configurations() -> dict[str, dict[str, Any]]:
    """Area, clock, rates and tests by the name of the configuration."""
    found: dict[str, dict[str, Any]] = json.loads(files(__package__).joinpath("configurations.json").read_text("utf-8"))
    return found
