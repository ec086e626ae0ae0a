"""``cdu offload``: what compressing activations gains when they are offloaded to the host."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cdu_cli.configurations import measured_configurations
from cdu_cli.options import ConfigOption, JsonOption, OutputOption, configuration
from cdu_cli.progress import ProgressBar, command_line, publish


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command(epilog="Example: cdu offload --config paper --network resnet50 --network vgg16 -o build/offload")(offload)


def offload(
    output: OutputOption,
    network: Annotated[
        list[str] | None,
        typer.Option(help="{networks}; may be given several times. Default: all."),
    ] = None,
    method: Annotated[
        list[str] | None,
        typer.Option(help="{methods}; may be given several times. Default: all. none and vdnn are always there."),
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
    from cdu_offload import unit
    from cdu_offload.compare_methods import OffloadSettings, compare_methods

    figures = measured_configurations().get(config)
    array, source = unit.described(configuration(config, None), figures, verify, synth, config)
    wanted = OffloadSettings(array, source, network, method, ratios, link, placement)
    with ProgressBar() as shown:
        report = compare_methods(wanted, command_line(), shown)
    publish(report, output, json_file)
