"""Rate of a unit as a measure of design-space exploration."""

from __future__ import annotations

import importlib.metadata
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cdu.delivery import verilog
from cdu_spec.config import CduConfig
from cdu_spec.modes import Mode
from cdu_spec.register_types import Channel
from cdu_tools import verilator
from cdu_tools.sources import sources_sha256

from cdu_verif.regression import plan, regression, results

_SOURCES = ("cdu", "cdu_spec", "cdu_tools", "cdu_verif", "actcodec.backends", "actcodec.codecs", "actcodec.golden")


class RateError(RuntimeError):
    """Unit whose simulation failed, or that is slower than its ports explain; the message names the test."""


@dataclass(frozen=True)
class Rate:
    """Measure ``rate``: values per cycle of the whole unit, both ways, in every mode but bypass.

    The unit is generated, built with Verilator and simulated through its AXI ports by the benches of `cdu verify`
    (:mod:`cdu_verif.benches.array_rate`), which check every byte and fail if a job is slower than the widths of the ports
    explain.

    Parameters
    ----------
    seed
        Seed of the stimulus.
    """

    seed: int = 1
    name: str = "rate"

    def versions(self) -> dict[str, str]:
        """Return versions of the generator, the simulator and the benches. MissingToolError if Verilator is missing."""
        found = {"verilator": verilator.find().version, "cocotb": importlib.metadata.version("cocotb")}
        return verilog.versions() | found | {"benches": sources_sha256(*_SOURCES)}

    def whats(self, config: CduConfig) -> Iterator[dict[str, Any]]:
        """Yield everything that the rate of a configuration depends on: all parameters but its name."""
        yield {"config": config.override(name=CduConfig.name).to_dict(), "seed": self.seed}

    def run(self, what: Mapping[str, Any], attachment: str) -> dict[str, Any]:
        """Simulate the unit and return its rates.

        In values per cycle: ``compress`` and ``decompress``, the greatest rate; ``least``, the lowest of any mode and content,
        incompressible ones included. ``measurements`` has the rows of ``report.json`` of `cdu verify`.

        Raises RateError when a test fails.
        """
        config = CduConfig.from_dict(what["config"])
        modes = [mode for mode in config.built_modes if mode is not Mode.BYPASS]
        names = tuple(f"rate/direction={channel.value}/mode={mode.name.lower()}" for channel in Channel for mode in modes)
        with tempfile.TemporaryDirectory(prefix="cdu-rate-") as folder:
            settings = regression.RunSettings(Path(folder), seed=what["seed"], tests=names)
            tests = regression.simulate(plan.PlannedRun(plan.ARRAY, config, ()), settings).tests
        failed = [test for test in tests if test.status == results.FAILED]
        if failed or {test.name for test in tests if test.status == results.PASSED} != set(names):
            raise RateError("; ".join(f"{test.name}: {test.message}" for test in failed) or "not all tests of the rate ran")
        rows = [row for test in tests for row in test.measurements]
        rates = {way.value: max(row["values_per_cycle"] for row in rows if row["direction"] == way.value) for way in Channel}
        return {**rates, "least": min(row["values_per_cycle"] for row in rows), "measurements": rows}
