"""``cdu coverage``: what regressions and proofs have reached, in one table."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cdu_cli.options import ConfigOption, JsonOption, OutputOption, SetOption, configuration
from cdu_cli.progress import ProgressBar, command_line, publish

_EXAMPLE = "Example: cdu coverage build/verify --mutants build/mutants/report.json -o build/coverage"
#: Where they are in a checkout, in which the command is run.
_PROOFS, _TESTS = Path("docs/evidence/proofs.csv"), Path("tests/hw")


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command(epilog=_EXAMPLE)(coverage)


def coverage(
    regression: Annotated[Path, typer.Argument(help="Folder of `cdu verify --coverage`.", metavar="FOLDER")],
    output: OutputOption,
    proofs: Annotated[Path, typer.Option(help="proofs.csv of `cdu formal --table`.")] = _PROOFS,
    tests: Annotated[Path, typer.Option(help="Folder of the tests in Amaranth's simulator.")] = _TESTS,
    config: ConfigOption = "tiny",
    settings: SetOption = None,
    mutants: Annotated[Path | None, typer.Option(help="mutants.csv or report.json of `cdu mutate`.")] = None,
    python: Annotated[Path | None, typer.Option(help="JSON file of coverage.py: branches of actcodec.")] = None,
    table: Annotated[
        Path | None, typer.Option(help="Also put the text into this Markdown page, and the CSV files beside it.")
    ] = None,
    json_file: JsonOption = None,
) -> None:
    """Merge the coverage of a regression by block, apply the waivers, and say which stage of sign-off each block has reached.

    Writes report.md, report.json and CSV files of blocks, waivers and uncovered points. Exit code 1 when a waiver is stale.
    """
    chosen = configuration(config, settings)
    from cdu_verif.coverage.cover_report import MARKS, CoverageSettings, put_tables, report_coverage

    if table is not None:
        MARKS.check(table)
    with ProgressBar() as shown:
        report = report_coverage(CoverageSettings(regression, chosen, proofs, tests, mutants, python), command_line(), shown)
    if table is not None:
        put_tables(table, report)
    publish(report, output, json_file)
