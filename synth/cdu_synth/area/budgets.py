"""Area budgets of the blocks, which tests check, kept in ``area_budgets.json``."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from cdu.delivery import generator
from cdu_spec.config import CduConfig
from cdu_tools.sources import sources_sha256
from cdu_tools.yosys import Engine, engine

from cdu_synth.area import flow
from cdu_synth.library.liberty import Library

#: Name of the data file in this package.
FILE = "area_budgets.json"
#: Share of a budget by which an area may differ from it, either way.
TOLERANCE = 0.03
#: Command that writes budgets anew.
WRITE = "python benchmarks/area_budgets.py --write"
#: Modules that map a block and add up its area; not those that make reports of it.
_MAPPING = (
    *(f"cdu_synth.area.{module}" for module in ("flow", "recipes", "clock_gates", "latches", "hierarchy", "timing")),
    "cdu_synth.library",
    "cdu_tools.yosys",
)


@dataclass(frozen=True)
class Budgets:
    """Budgets, and the settings of the measurements that they are for.

    Parameters
    ----------
    config
        Name of the configuration.
    pdk
        Name of the library.
    yosys
        Build of Yosys and its version, ``pyosys 0.70``: another one maps a little differently.
    recipe, clock_ns
        Arguments of :func:`cdu_synth.area.flow.synthesise`.
    ge
        Budget of every block in gate equivalents.
    origins
        :meth:`origin` of every block when it was measured.
    built_with
        Parameters that replace those of the configuration for blocks that cannot be built with it.
    """

    config: str
    pdk: str
    yosys: str
    recipe: str
    clock_ns: float
    ge: Mapping[str, float]
    origins: Mapping[str, str]
    built_with: Mapping[str, Mapping[str, Any]]

    def origin(self, block: str, config: CduConfig) -> str:
        """Return a checksum of everything that determines a block's area: its Verilog without comments, and mapping sources.

        While it equals the one in ``origins`` the area is that of the budget, and need not be measured again.
        """
        code = re.sub(r"^ *//.*\n", "", generator.kept(config, block).verilog, flags=re.MULTILINE)
        return hashlib.sha256((code + sources_sha256(*_MAPPING)).encode()).hexdigest()

    @property
    def build(self) -> Engine:
        """Return the Yosys of that name, in any version. Raises MissingToolError if it is not installed."""
        return engine(self.yosys.split()[0])

    def measure(self, block: str, config: CduConfig, library: Library, build: Engine) -> float:
        """Return the area of a block in gate equivalents, measured as the budgets were."""
        made = generator.kept(config, block)
        return flow.synthesise(made.verilog, made.top, library, self.clock_ns, build, recipes=[self.recipe])[self.recipe].ge

    def verdict(self, block: str, ge: float) -> str:
        """Return a sentence that says why an area is not allowed; empty if it is allowed.

        A smaller area is not allowed either: until its budget is adapted, it could grow back unnoticed.
        """
        again = f"`{WRITE} --only {block}` makes it the budget"
        if block not in self.ge:
            return f"{block}: {ge / 1e3:.1f} kGE, no budget: {again}"
        change = ge / self.ge[block] - 1
        if abs(change) <= TOLERANCE:
            return ""
        much = "more" if change > 0 else "less"
        return (
            f"{block}: {ge / 1e3:.1f} kGE, budget {self.ge[block] / 1e3:.1f} kGE, {change:+.1%}: {much} than "
            f"{TOLERANCE:.0%} are not allowed; {'if it has to be so, ' if change > 0 else ''}{again}"
        ).replace("%", " %")

    def text(self) -> str:
        """Return the content of the data file."""
        return json.dumps(dataclasses.asdict(self), indent=2) + "\n"


def read() -> Budgets:
    """Read the budgets of the data file."""
    return Budgets(**json.loads(files(__package__).joinpath(FILE).read_text(encoding="utf-8")))


def table(areas: Mapping[str, float], budgets: Budgets) -> list[str]:
    """Return lines of a table of measured areas and their budgets, with a mark if one is not kept."""
    width = max(map(len, areas), default=0)
    lines = [f"{'block':{width}}  {'kGE':>8}  {'budget':>8}  {'change':>8}"]
    for block, ge in areas.items():
        budget = budgets.ge.get(block)
        known = f"{budget / 1e3:8.2f}  {100 * (ge / budget - 1):+6.1f} %" if budget else f"{'none':>8}  {'':8}"
        lines.append(f"{block:{width}}  {ge / 1e3:8.2f}  {known}{'  <--' if budgets.verdict(block, ge) else ''}")
    return lines
