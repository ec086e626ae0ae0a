"""The study of ``cdu power``: power and energy per value of synthesised blocks with given stimuli."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from cdu.delivery import generator
from cdu_spec.config import CduConfig
from cdu_tools import yosys
from cdu_tools.errors import UserError
from cdu_tools.progress import Progress, Silent
from cdu_tools.report import Report

from cdu_synth.area.block_selection import check_blocks
from cdu_synth.area.provenance import provenance
from cdu_synth.area.recipes import CLOCK_NS, check_clock, check_recipes
from cdu_synth.library import pdk
from cdu_synth.power import power_report
from cdu_synth.power.gate_report import GateMeter

#: Default recipe of the netlists that are measured.
RECIPE = "balanced"


class Words(Protocol):
    """Words to send to a netlist, and words expected from it."""

    @property
    def inputs(self) -> Mapping[str, Sequence[int]]:
        """Return the words of each input stream."""

    @property
    def expected(self) -> Mapping[str, Sequence[int]]:
        """Return the words of each output stream."""

    @property
    def settings(self) -> Mapping[str, int]:
        """Return the values of input ports that are not streams."""

    @property
    def values(self) -> int:
        """Return the number of uncompressed values that pass."""


#: Returns the stimuli of a block with given ports (from its manifest, by name): codec, kind of data, and words.
Stimuli = Callable[[str, Mapping[str, Any]], Iterable[tuple[str, str, Words]]]


@dataclass(frozen=True)
class PowerSettings:
    """Settings of a power measurement. UserError for settings that are not allowed.

    Parameters
    ----------
    config, blocks, pdk, yosys
        Those of :class:`cdu_synth.area.synthesise_blocks.SynthesisSettings`; at least one block.
    clock_ns
        Period in ns for which gates are sized and power is computed, whether or not it is met.
    recipe
        One of :data:`cdu_synth.area.recipes.RECIPES`.
    """

    config: CduConfig
    blocks: Sequence[str]
    pdk: str = pdk.DEFAULT
    clock_ns: float = CLOCK_NS
    yosys: str = yosys.GENERATOR
    recipe: str = RECIPE

    def __post_init__(self) -> None:
        assert self.blocks, "there is nothing to measure"
        check_blocks(self.blocks)
        check_recipes([self.recipe])
        check_clock(self.clock_ns)
        if self.config.reset_kind != "sync":
            raise UserError(
                f"reset_kind = {self.config.reset_kind} cannot be measured, its gates are simulated edge by edge: use sync, "
                "with which the energy of a value is the same"
            )


def measure_power(
    settings: PowerSettings, stimuli: Stimuli, source: str, command: str, progress: Progress | None = None
) -> Report:
    """Simulate the netlists of blocks: ``power.json``, ``power.md``, and the netlists, ``BLOCK_gates.v``.

    Parameters
    ----------
    settings
        Settings of the run.
    stimuli
        Returns the stimuli of each block.
    source
        A phrase on the origin of the stimuli.
    command
        Command line that the report states.
    progress
        Receives every result.

    Raises :class:`~cdu_synth.power.gate_simulator.GateSimulationError` if a netlist gives other words than expected,
    MissingToolError if the library or a program is missing.
    """
    shown = progress or Silent()
    library, build = pdk.find(settings.pdk).read(), yosys.engine(settings.yosys)
    runs: list[dict[str, Any]] = []
    netlists: dict[str, str] = {}
    for block in settings.blocks:
        made = generator.generate(settings.config, block)
        shown.begin(f"preparing what {block} is played")
        played = list(stimuli(block, {port["name"]: port for port in made.manifest["ports"]}))
        shown.begin(f"synthesising {block} (kept in the cache)")
        meter = GateMeter(made.verilog, made.top, library, settings.clock_ns, settings.recipe, build)
        netlists[f"{block}_gates.v"] = meter.netlist()
        shown.begin(f"simulating {block}", len(played))
        for codec, data, words in played:
            figures = meter.measure(words.inputs, words.expected, words.settings, words.values)
            runs.append({"block": block, "codec": codec, "data": data, **figures})
            what = f"{figures['milliwatts']:.2f} mW, {figures['picojoules_per_value']:.2f} pJ/value"
            shown.say(f"{block}, {codec}, {data}: {what}")
            shown.step()
    recipes, blocks = [settings.recipe], [run["block"] for run in runs]
    made_with = provenance(settings.config, command, build.tools, library, settings.clock_ns, recipes, blocks)
    return power_report.of_content(made_with | {"volts": meter.volts, "source": source, "runs": runs}, netlists)
