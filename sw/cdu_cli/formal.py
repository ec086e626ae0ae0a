"""``cdu formal``: proofs about the generated Verilog."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from cdu_cli.options import ConfigOption, JsonOption, OutputOption, SetOption, configuration, distinct
from cdu_cli.progress import ProgressBar, publish

_EXAMPLE = "Example: cdu formal --block transposer --block dct -o build/formal"


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(epilog=_EXAMPLE)(formal)


def formal(
    output: OutputOption,
    config: ConfigOption = "tiny",
    settings: SetOption = None,
    block: Annotated[list[str] | None, typer.Option(help="One block; may be given several times. Default: all.")] = None,
    name: Annotated[str | None, typer.Option("--property", help="Only properties of this name. Default: all.")] = None,
    table: Annotated[
        Path | None, typer.Option(help="Also put the counts into this Markdown page, and the rows into proofs.csv beside it.")
    ] = None,
    modules: Annotated[
        Path | None,
        typer.Option("--properties", help="Prove the property modules in this folder of the unit's AXI ports instead."),
    ] = None,
    json_file: JsonOption = None,
) -> None:
    """Prove properties of the generated Verilog with sby, yices and ABC.

    Writes report.md, report.json and results.xml (JUnit). Exit code 1 when a property is not proven; a counterexample's
    waveform (VCD) is named.
    """
    chosen = configuration(config, settings)
    from cdu_verif.proofs.prove_blocks import ProofSettings, prove_blocks

    wanted = ProofSettings(chosen, output, distinct("--block", block), name, table, modules)
    given = [("--config", config), *(("--set", item) for item in settings or []), *(("--block", item) for item in block or [])]
    given += [("--property", name)] if name else []
    given += [("--properties", str(modules))] if modules else []
    command = " ".join(["cdu formal", *(f"{option} {shlex.quote(value)}" for option, value in given)])
    with ProgressBar() as shown:
        report = prove_blocks(wanted, f"{command} -o {shlex.quote(str(output))}", shown)
    publish(report, output, json_file)
