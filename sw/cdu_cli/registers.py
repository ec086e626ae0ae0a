"""``cdu registers``: the registers of a unit as other programs want them."""

from __future__ import annotations

from typing import Annotated

import typer

from cdu_cli.options import ConfigOption, OutputOption, SetOption, configuration, distinct


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command(epilog="Example: cdu registers --config tiny --set dma_bits=128 --format uvm -o build/registers")(registers)


def registers(
    output: OutputOption,
    config: ConfigOption = "tiny",
    settings: SetOption = None,
    formats: Annotated[
        list[str] | None, typer.Option("--format", help="uvm or html; may be given several times. Default: all.")
    ] = None,
) -> None:
    """Write NAME_ral.sv (register model for UVM) and NAME_html (pages) through PeakRDL (extra `rdl`).

    `cdu generate` writes the registers in C, in SystemRDL, in IP-XACT and for debuggers.
    """
    chosen, wanted = configuration(config, settings), distinct("--format", formats)
    from cdu.delivery.register_models import FORMATS, write_models

    for path in write_models(chosen, wanted or list(FORMATS), output):
        typer.echo(path)
