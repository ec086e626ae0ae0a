"""Output of a command: progress on a terminal, then the files and the lines of its report."""

from __future__ import annotations

import shlex
import sys
from contextlib import AbstractContextManager
from pathlib import Path
from types import TracebackType

import typer
from cdu_tools.files import make_folder
from cdu_tools.report import Report
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TaskProgressColumn, TextColumn, TimeRemainingColumn

from cdu_cli.options import write_json


class ProgressBar(AbstractContextManager["ProgressBar"]):
    """A :class:`cdu_tools.progress.Progress` on standard error: one bar with its percentage, and lines above it.

    Parameters
    ----------
    outer
        What is shown already, below whose bar this one comes; it begins and ends with that.
    """

    def __init__(self, outer: ProgressBar | None = None) -> None:
        self._bar: TaskID | None = None
        self._bars: Progress = _bars() if outer is None else outer._bars

    def __enter__(self) -> ProgressBar:
        """Show."""
        self._bars.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Clear what was shown."""
        self._bars.stop()

    def begin(self, what: str, total: int | None = None) -> None:
        """Implement :class:`~cdu_tools.progress.Progress`."""
        if self._bar is not None:
            self._bars.remove_task(self._bar)
        self._bar = self._bars.add_task(what, total=total)

    def step(self) -> None:
        """Implement :class:`~cdu_tools.progress.Progress`."""
        if self._bar is not None:
            self._bars.advance(self._bar)

    def say(self, line: str) -> None:
        """Implement :class:`~cdu_tools.progress.Progress`."""
        self._bars.console.print(line, markup=False, highlight=False, soft_wrap=True)


def _bars() -> Progress:
    columns = (
        TextColumn("{task.description}", markup=False),  # names of files in it may have any characters
        BarColumn(),
        TaskProgressColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    console = Console(stderr=True)
    # Where nobody looks on, a bar would be an empty line.
    return Progress(*columns, console=console, transient=True, disable=not console.is_terminal)


def command_line() -> str:
    """The command as it was given, for reports."""
    return shlex.join(["cdu", *sys.argv[1:]])


def publish(report: Report, output: Path, json_file: Path | None = None) -> None:
    """Write a report into the folder of ``-o``, its content into the file of ``--json``, and print paths and lines.

    Ends the command with exit code 1 when something of the report failed.
    """
    for path in report.write(make_folder(output)):
        typer.echo(path)
    write_json(json_file, report.content)
    for line in report.lines:
        typer.echo(line)
    for sentence in report.failed:
        typer.echo(sentence, err=True)
    if report.failed:
        raise typer.Exit(1)
