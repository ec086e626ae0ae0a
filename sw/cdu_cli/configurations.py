"""Figures of the named configurations, measured by benchmarks/configurations.py."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any

from cdu_spec.registers import MAJOR, MINOR

#: Version of the register map of the units that are generated now.
REGISTERS = f"{MAJOR}.{MINOR}"


def tests_passed(tests: dict[str, int]) -> int:
    """Return the number of tests that passed, by the numbers of a report."""
    return tests["tests"] - tests["skipped"] - tests["failures"]


def tests_in_words(tests: dict[str, int]) -> str:
    """Return the numbers of tests that passed, of all tests, and of skipped ones: ``492 of 510, 18 skipped``."""
    return f"{tests_passed(tests)} of {tests['tests']}" + (f", {tests['skipped']} skipped" if tests["skipped"] else "")


def measured_configurations() -> dict[str, dict[str, Any]]:
    """Area, clock, rates and tests by the name of the configuration."""
    found: dict[str, dict[str, Any]] = json.loads(files(__package__).joinpath("configurations.json").read_text("utf-8"))
    return found
