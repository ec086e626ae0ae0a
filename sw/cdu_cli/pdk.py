"""``cdu pdk``: the cell libraries that are known by name, and fetching them."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer
from cdu_tools.distinct import check_distinct
from cdu_tools.errors import UserError
from cdu_tools.near_names import unknown

from cdu_cli.group import Commands
from cdu_cli.options import JsonOption, write_json

if TYPE_CHECKING:
    from cdu_synth.library.pdk import Known

NamesArgument = Annotated[list[str], typer.Argument(metavar="NAME", help="Libraries (`cdu pdk list` names them).")]


def register(app: typer.Typer) -> None:
    """Add the group of commands to the application."""
    group = Commands(no_args_is_help=True, rich_markup_mode=None)
    group.command("list", epilog="Example: cdu pdk list --json build/libraries.json")(show)
    group.command(epilog="Example: cdu pdk fetch sky130hd ihp_sg13g2")(fetch)
    app.add_typer(group, name="pdk", help="Show standard-cell libraries with their licences, and fetch them.")


def show(json_file: JsonOption = None) -> None:
    """Show the known cell libraries: corner, licence, address, and whether they are here."""
    from cdu_synth.library import pdk

    here = {source.name: [str(path) for path in source.files] for source in pdk.available()}
    rows = []
    for name, known in pdk.KNOWN.items():
        _print(known)
        if name in here:
            typer.echo(f"  here     {', '.join(here[name])}")
            rows.append(_about(known) | {"here": here[name]})
        else:
            typer.echo(f"  missing  add it with {pdk.adding(name)}")
            rows.append(_about(known) | {"here": [], "add": pdk.adding(name)})
    own = {name: paths for name, paths in here.items() if name not in pdk.KNOWN}
    for name, paths in own.items():
        typer.echo(f"{name}: a library of your own\n  here     {', '.join(paths)}")
    write_json(json_file, {"libraries": rows, "own": own})


def fetch(names: NamesArgument, json_file: JsonOption = None) -> None:
    """Download cell libraries into the user's cache, checked by SHA-256; a download that was cut off goes on.

    The licence of each library is its publisher's and is shown.
    """
    from cdu_synth.library import fetch, pdk
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TaskID, TextColumn

    check_distinct("NAME", names)
    for name in names:
        if name not in pdk.KNOWN:
            raise UserError(unknown("cell library", name, pdk.KNOWN))
    folder = pdk.fetched()
    columns = TextColumn("{task.description}"), BarColumn(), DownloadColumn()
    results = []
    for name in names:
        known = pdk.KNOWN[name]
        _print(known)
        with Progress(*columns, console=Console(stderr=True), transient=True) as bars:
            tasks = {file.name: bars.add_task(file.name, total=file.size) for file in known.files}

            def show_bytes(file: str, arrived: int, bars: Progress = bars, tasks: dict[str, TaskID] = tasks) -> None:
                bars.update(tasks[file], completed=arrived)

            paths = fetch.fetch(known, folder, show_bytes)
        for path in paths:
            typer.echo(f"  here     {path}, SHA-256 as published")
        used = pdk.find(name).files
        if used != tuple(paths):
            print(f"{name} is taken from {used[0].parent}, which goes before {folder}", file=sys.stderr)
        results.append(_about(known) | {"here": [str(path) for path in paths]})
    write_json(json_file, results)


def _about(known: Known) -> dict[str, Any]:
    return {
        "name": known.name,
        "title": known.title,
        "corner": known.corner,
        "licence": known.licence,
        "terms": known.terms,
        "source": known.source,
        "files": [{"address": file.address, "bytes": file.size, "sha256": file.sha256} for file in known.files],
    }


def _print(known: Known) -> None:
    typer.echo(f"{known.name}: {known.title}, {known.corner}")
    typer.echo(f"  licence  {known.licence}, {known.terms}")
    typer.echo(f"  from     {known.source}")
