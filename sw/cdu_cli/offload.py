"""``cdu offload``: what compressing activations gains when they are offloaded to the host."""

from __future__ import annotations

import json
import shlex
import sys
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from cdu_tools.distinct import check_distinct
from cdu_tools.errors import UserError
from cdu_tools.files import write_whole

from cdu_cli.options import ConfigOption, JsonOption, OutputOption, configuration, output_directory, write_json

if TYPE_CHECKING:
    from cdu_offload.unit import CduArray


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command(epilog="Example: cdu offload --config paper --network resnet50 --network vgg16 -o build/offload")(offload)


def offload(
    output: OutputOption,
    network: Annotated[
        list[str] | None,
        typer.Option(help="resnet18, resnet50, vgg16, resnet50-cifar, wrn28-10 or vdsr; several times. Default: all."),
    ] = None,
    method: Annotated[
        list[str] | None,
        typer.Option(
            help="none, vdnn, cdma, gist, sfpr, jpeg-base, jpeg-act, division, actnn, division-software or actnn-software; "
            "several times. Default: all. none and vdnn are always there."
        ),
    ] = None,
    config: ConfigOption = "paper",
    verify: Annotated[
        Path | None, typer.Option(help="report.json of `cdu verify --block array`: rates of that unit, mode by mode.")
    ] = None,
    synth: Annotated[Path | None, typer.Option(help="report.json of `cdu synth --block array`: clock of that unit.")] = None,
    ratios: Annotated[
        Path | None, typer.Option(help="results.json of `cdu train`: its ratios, for the networks of the same family.")
    ] = None,
    link: Annotated[float | None, typer.Option("--link-gb-s", help="Link to the host, GB/s each way (12.8).")] = None,
    placement: Annotated[str, typer.Option(help="Where the CDUs stand: dma, or cache (one at each partition).")] = "dma",
    json_file: JsonOption = None,
) -> None:
    """Simulate training steps that offload activations and write offload.md, offload.json and three pictures.

    A discrete-event model of GPU, DMA engine, CDUs and link with vDNN's schedule: docs/user/offload.md says what it assumes.
    """
    if link is not None and not 0.1 <= link <= 10_000:
        raise UserError(f"--link-gb-s {link:g} is not allowed: use 0.1 to 10000")
    from cdu_offload import network as networks
    from cdu_offload import platform as machines
    from cdu_offload import plots, report, study
    from cdu_offload import ratios as measured
    from cdu_offload.catalog import TITLES, Machine
    from cdu_offload.offload import PLACEMENTS
    from rich.console import Console
    from rich.progress import Progress

    if placement not in PLACEMENTS:
        raise UserError(f"--placement {placement} is not known: use {' or '.join(PLACEMENTS)}")
    if unknown := [name for name in method or [] if name not in TITLES]:
        raise UserError(f"--method {unknown[0]} is not known: use {', '.join(TITLES)}")
    check_distinct("--method", method)
    check_distinct("--network", network)
    chosen = networks.chosen(network)
    methods = [name for name in TITLES if method is None or name in (*method, "none", "vdnn")]
    array, unit_source = _array(config, verify, synth)
    facts = machines.facts()
    machine = Machine.usual(facts, array, networks.shipped(), None if link is None else link * 1e9, placement)
    table, ratios_source = measured.shipped(), "the package (python benchmarks/offload_data.py ratios)"
    if ratios is not None:
        own = measured.read(ratios)
        for model, codecs in own.items():
            table[model] = table.get(model, {}) | codecs
        replaced = "; ".join(f"{model}: {', '.join(codecs)}" for model, codecs in own.items())
        ratios_source = f"{ratios} ({replaced}), and what is not there from {ratios_source}"
        if not any(one.family in own for one in chosen):
            raise UserError(f"--ratios {ratios} is of model {', '.join(own)}, which stands for none of the chosen networks")
    plan = study.Study(machine, chosen, methods, table, facts["crossbar_hz"]["value"])
    folder = output_directory(output)
    with Progress(console=Console(stderr=True), transient=True) as progress:
        bar = progress.add_task("simulating", total=study.total(plan))
        outcomes = plan.comparison(lambda: progress.advance(bar))
        sweeps = plan.sweeps(lambda: progress.advance(bar))
    command = shlex.join(["cdu", *sys.argv[1:]])
    result = report.content(plan, outcomes, sweeps, facts, command, ratios_source, unit_source)
    write_whole(folder / "speedup.png", plots.speedup_bars(chosen, outcomes))
    write_whole(folder / "stalls.png", plots.stalls(chosen, outcomes))
    write_whole(folder / "sensitivity.png", plots.sensitivity(sweeps))
    write_whole(folder / "offload.json", json.dumps(result, indent=1) + "\n")
    write_whole(folder / "offload.md", report.markdown(result))
    write_json(json_file, result)
    for name, row in result["speedups"]["vdnn"].items():
        print(f"{TITLES[name]:15} {row['mean']:.2f} times as fast as vDNN")
    print(f"written: {folder / 'offload.md'}, offload.json, speedup.png, stalls.png, sensitivity.png", file=sys.stderr)


def _array(config: str, verify: Path | None, synth: Path | None) -> tuple[CduArray, str]:
    """The CDUs of a configuration, and a sentence on where their figures come from; UserError when nobody measured it."""
    from cdu_offload import unit

    chosen = configuration(config, None)
    known = json.loads(files("cdu_cli").joinpath("configurations.json").read_text(encoding="utf-8"))
    if config in known:
        array = unit.of_figures(chosen.cdus, chosen.duplex, known[config])
    elif verify is None or synth is None:
        raise UserError(f"nobody measured --config {config}: give --verify and --synth, or use {', '.join(known)}")
    else:
        array = unit.unmeasured(chosen.cdus)
    sources = [f"benchmarks/configurations.py ({config})"] if verify is None or synth is None else []
    if verify is not None:
        array = unit.with_rates(array, verify)
        sources.append(f"rates: {verify}")
    if synth is not None:
        array = unit.with_clock(array, synth)
        sources.append(f"clock: {synth}")
    return array, ", ".join(sources)
