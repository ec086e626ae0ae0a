"""The study of ``cdu compare``: blocks of this project beside other designs, synthesised in the same run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from cdu.delivery import generator
from cdu_spec.config import CduConfig
from cdu_synth.area import flow
from cdu_synth.area.block_selection import check_blocks
from cdu_synth.area.provenance import provenance
from cdu_synth.area.recipes import CLOCK_NS, RECIPES, check_clock, check_recipes
from cdu_synth.library import pdk
from cdu_tools import yosys
from cdu_tools.errors import UserError
from cdu_tools.parallel import largest_first
from cdu_tools.progress import Progress, Silent
from cdu_tools.report import Report

from cdu_peers import comparison, elaborate, peers

#: Default blocks to compare with other designs.
BLOCKS = ("dct", "idct", "two_way_dct", "zvc_encoder", "zvc_decoder", "compressor", "decompressor")
#: Returns what is known of a block's errors, and the source of that.
Accuracy = Callable[[str, CduConfig], tuple[str, str]]


@dataclass(frozen=True)
class GivenDesign:
    """A design given by the user.

    Parameters
    ----------
    files, top, include, defines, parameters
        Arguments of :func:`cdu_peers.elaborate.elaborate`.
    samples_per_cycle
        Rate of the design in uncompressed values per cycle; None if unknown.
    """

    files: Sequence[Path]
    top: str
    include: Sequence[Path] = ()
    defines: Mapping[str, str] = field(default_factory=dict)
    parameters: Mapping[str, str] = field(default_factory=dict)
    samples_per_cycle: float | None = None


@dataclass(frozen=True)
class ComparisonSettings:
    """Settings of a comparison. UserError for settings that are not allowed.

    Parameters
    ----------
    config, blocks, pdk, yosys, recipes
        Those of :class:`cdu_synth.area.synthesise_blocks.SynthesisSettings`; default of the blocks: :data:`BLOCKS`.
    given
        A design given by the user.
    peers
        Folder with the checkouts of the open cores that have recipes (:mod:`cdu_peers.peers`).
    clock_ns
        Target period in ns.
    """

    config: CduConfig
    given: GivenDesign | None = None
    peers: Path | None = None
    blocks: Sequence[str] = BLOCKS
    pdk: str = pdk.DEFAULT
    clock_ns: float = CLOCK_NS
    yosys: str = yosys.GENERATOR
    recipes: Sequence[str] = tuple(RECIPES)

    def __post_init__(self) -> None:
        check_blocks(self.blocks)
        check_recipes(self.recipes)
        check_clock(self.clock_ns)
        if self.given is None and self.peers is None:
            raise UserError("there is nothing to compare with: give a design, or the folder of the open cores")


@dataclass(frozen=True)
class _Source:
    """A row, with the Verilog and the top module to synthesise; without Verilog if there is none."""

    design: comparison.Design
    verilog: str
    top: str


def compare_designs(settings: ComparisonSettings, accuracy: Accuracy, command: str, progress: Progress | None = None) -> Report:
    """Report area and clock of all designs with the same scripts: ``compare.json``, ``compare.md`` and ``compare.png``.

    Parameters
    ----------
    settings
        Settings of the run.
    accuracy
        Returns what is known of the errors of a block of this project; empty texts if nothing is.
    command
        Command line that the report states.
    progress
        Receives the cost of every design.

    Another design that cannot be synthesised is a row without figures, and is among the failures in the report unless its
    sources are missing. Raises MissingToolError if the library or Yosys is missing.
    """
    shown = progress or Silent()
    library, build = pdk.find(settings.pdk).read(), yosys.engine(settings.yosys)
    shown.begin("reading the designs")
    sources = [*_given(settings.given, build), *_peers(settings.peers, build)]
    sources += [_own(block, settings.config, accuracy) for block in settings.blocks]

    def finished(source: _Source) -> comparison.Design:
        if not source.verilog:
            return source.design
        try:
            costs = flow.synthesise(source.verilog, source.top, library, settings.clock_ns, build, recipes=settings.recipes)
        except (UserError, yosys.YosysError) as error:
            return replace(source.design, problem=f"cannot be synthesised: {' '.join(str(error).split())}")
        cost = flow.choose(costs, settings.clock_ns)
        shown.say(f"{source.design.name}: {cost.ge / 1e3:.2f} kGE, {cost.critical_path_ns:.2f} ns")
        shown.step()
        return replace(source.design, cost=cost)

    shown.begin("synthesising", sum(bool(source.verilog) for source in sources))
    designs = largest_first(finished, sources, lambda source: len(source.verilog))
    made_with = provenance(settings.config, command, build.tools, library, settings.clock_ns, settings.recipes, settings.blocks)
    return comparison.of_designs(designs, made_with)


def _given(given: GivenDesign | None, build: yosys.Engine) -> Iterator[_Source]:
    """Yield the design given by the user, if any."""
    if given is not None:
        text = elaborate.elaborate(given.files, given.top, given.include, given.defines, given.parameters, build)
        rate = given.samples_per_cycle
        source = "--samples-per-cycle" if rate else ""
        yield _Source(
            comparison.Design(given.top, comparison.GIVEN, None, samples_per_cycle=rate, rate_source=source), text, given.top
        )


def _peers(folder: Path | None, build: yosys.Engine) -> Iterator[_Source]:
    """Yield a source for every recipe, without Verilog if its sources are missing or cannot be read."""
    for recipe in peers.recipes() if folder else ():
        assert folder is not None, "there are no recipes without a folder"
        design = comparison.Design(
            recipe.name,
            comparison.PEER,
            None,
            does=recipe.does,
            samples_per_cycle=recipe.samples_per_cycle,
            rate_source=recipe.rate_source,
            accuracy=recipe.accuracy,
            accuracy_source=recipe.accuracy_source,
            recipe=recipe,
        )
        try:
            design = replace(design, verified=recipe.checked(folder))
            yield _Source(design, recipe.verilog(folder, build), recipe.top)
        except peers.CheckoutError as error:
            absent = not (folder / recipe.folder).exists()
            yield _Source(replace(design, problem=str(error), absent=absent), "", recipe.top)
        except elaborate.DesignError as error:
            yield _Source(replace(design, problem=str(error)), "", recipe.top)


def _own(block: str, config: CduConfig, accuracy: Accuracy) -> _Source:
    """Return the source of a block of this project."""
    made, rate = generator.generate(config, block), comparison.own_rate(block, config)
    known, known_from = accuracy(block, config)
    design = comparison.Design(
        block,
        comparison.OURS,
        None,
        samples_per_cycle=rate,
        rate_source="docs/user/hardware.md, measured by benchmarks/array_rate.py" if rate else "",
        accuracy=known,
        accuracy_source=known_from,
    )
    return _Source(design, made.verilog, made.top)
