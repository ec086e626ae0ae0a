"""``cdu formal``: proofs about the generated Verilog."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from cdu_cli.options import (
    ConfigOption,
    JsonOption,
    OutputOption,
    SetOption,
    configuration,
    distinct,
    output_directory,
    write_json,
)

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
    table: Annotated[Path | None, typer.Option(help="Also put the rows in the table of this Markdown page.")] = None,
    json_file: JsonOption = None,
) -> None:
    """Prove properties of the generated Verilog with sby, yices and ABC.

    Writes report.md, report.json and results.xml (JUnit). Exit code 1 when a property is not proven; a counterexample's
    waveform (VCD) is named.
    """
    chosen = configuration(config, settings)
    try:
        from cdu_verif.formal import campaign, catalog, solver
    except ModuleNotFoundError as error:
        from cdu_tools.errors import MissingToolError

        raise MissingToolError(f"{error.name} is not installed: add it with `pip install 'cdu[formal]'`") from None
    planned = catalog.properties(chosen, distinct("--block", block), name)
    if table is not None:
        campaign.check_table(table)
    solver.find_programs()
    folder = output_directory(output)
    given = [("--config", config), *(("--set", item) for item in settings or []), *(("--block", item) for item in block or [])]
    given += [("--property", name)] if name else []
    command = " ".join(["cdu formal", *(f"{option} {shlex.quote(value)}" for option, value in given)])
    command += f" -o {shlex.quote(str(output))}"
    print(f"{len(planned)} properties", file=sys.stderr, flush=True)

    def show(proof: campaign.Proof) -> None:
        state = "proven" if proof.verdict.proven else "NOT PROVEN"
        print(f"{state:10} {proof.what.label:56} {proof.seconds:6.1f} s", file=sys.stderr, flush=True)

    proofs = campaign.run(planned, folder, show)
    content = campaign.write(folder, proofs, command)
    write_json(json_file, content)
    if table is not None:
        campaign.put_table(table, proofs, command, catalog.properties(chosen))
    print(f"{folder / 'report.md'}: {content['tests']} properties, {content['failures']} not proven", file=sys.stderr)
    for proof in proofs:
        if not proof.verdict.proven:
            print(f"not proven: {proof.what.label}: {proof.verdict.message}", file=sys.stderr)
            if proof.verdict.trace:
                print(f"  counterexample: {proof.verdict.trace}", file=sys.stderr)
    if content["failures"]:
        raise typer.Exit(1)
