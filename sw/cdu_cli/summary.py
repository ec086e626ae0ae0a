"""``cdu summary``: the results that other commands left in a folder, in one short table."""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer
from cdu_tools.errors import MissingToolError, UserError, unreadable
from cdu_tools.files import check_target, write_whole

from cdu_cli.results_page import page as results_page

_TITLE = "The unit and what it does to training"


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(epilog="Example: cdu summary build/demo --page")(summary)


def summary(
    folder: Annotated[Path, typer.Argument(help="Folder with results of other commands in its subfolders.")],
    page: Annotated[
        bool, typer.Option("--page", help="Write FOLDER/index.html, too: a picture of the unit, tables and plots.")
    ] = False,
) -> None:
    """Print what generate, verify, synth and train found, a line each.

    Looks for their JSON files one folder below the given one.
    """
    from rich.console import Console
    from rich.table import Table

    if not folder.is_dir():
        raise UserError(f"{unreadable(folder, folder=True)}; give a folder with results of other commands in its subfolders")
    target = folder / "index.html"
    if page:
        check_target(target)
    contents: dict[Path, Any] = {}
    lines: list[tuple[str, str, Path]] = []
    for path in sorted(folder.glob("*/*.json")):
        try:
            contents[path] = json.loads(path.read_text(encoding="utf-8"))
            lines += [(what, result, path.parent) for what, result in _lines(contents[path])]
        except OSError as error:
            raise UserError(f"cannot read {path}: {error.strerror}") from None
        except ValueError:
            raise UserError(f"{path} is no JSON: remove it, or make it again with the command that wrote it") from None
        except (AttributeError, KeyError, TypeError, statistics.StatisticsError):
            raise UserError(f"{path} is no result of a command as it is now: remove it, or make it again") from None
    if not lines:
        raise MissingToolError(f"no results below {folder}: make some with `make demo`")
    table = Table("what", "result", "where", title=_TITLE, title_justify="left")
    for what, result, where in lines:
        table.add_row(what, result, str(where))
    Console(width=140).print(table)
    if page:
        write_whole(target, results_page(_TITLE, lines, contents, folder))
        typer.echo(f"one page with pictures, tables and plots: {target}")


def _lines(content: Any) -> Iterator[tuple[str, str]]:
    """The lines of one result file, none for files of other kinds."""
    match content:
        case {"name": name, "ports": ports, "sha256": files}:
            yield f"Verilog of {name}", f"{', '.join(files)} with {len(ports)} ports"
        case {"tests": tests, "failures": failures, "results": results}:
            yield "bit-equal to the golden model", f"{tests - failures} of {tests} tests passed"
            for result in results:
                yield from _training(result.get("figures", {}))
        case {"pdk": pdk, "blocks": blocks}:
            for name, cost in blocks.items():
                yield (
                    f"{name} on {pdk}",
                    f"{cost['ge'] / 1e3:.1f} kGE, {cost['flip_flops']} flip-flops, {cost['mhz']:.0f} MHz before layout",
                )
        case {"model": model, "dataset": dataset, "runs": runs}:
            by_codec: dict[str, list[dict[str, Any]]] = {}
            for run in runs:
                by_codec.setdefault(run["codec"], []).append(run)
            for codec, of_codec in by_codec.items():
                score = statistics.mean(run["score"] for run in of_codec)
                ratio = statistics.mean(run["ratio_of_everything"] for run in of_codec)
                yield (
                    f"{model} on {dataset}, {codec}",
                    f"{of_codec[0]['score_name']} {score:.2f}, saved tensors {ratio:.1f} times smaller ({len(of_codec)} seeds)",
                )


def _training(figures: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """The line of a training through the simulated unit."""
    if "steps" in figures:
        yield (
            "training through the simulated unit",
            f"{figures['steps']} steps, {figures['tensors_compressed']} tensors compressed "
            f"{figures['ratio']} times, losses equal to the last bit",
        )
