"""Reports: tables, Markdown pages, and the files that a command writes to a folder."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cdu_tools.files import write_whole

#: Cells that are aligned right: a number, alone, before a unit, or before more text; an empty cell.
_NUMBER = re.compile(r"[-+]?\d[\d,]*(\.\d+)?( |x|%|e[-+]|$)|-?$")
#: An escaped vertical bar.
_STROKE = r"\|"


def table_row(cells: Iterable[object]) -> str:
    """Return one line of a Markdown table, for output line by line; a vertical bar in a cell does not end it."""
    return f"| {' | '.join(str(cell).replace('|', _STROKE) for cell in cells)} |"


@dataclass(frozen=True)
class Table:
    """Header and rows of texts; every row has as many cells as the header."""

    header: Sequence[str]
    rows: Sequence[Sequence[str]]

    def __post_init__(self) -> None:
        assert all(len(one) == len(self.header) for one in self.rows), "a row has as many cells as the header"

    def markdown(self) -> str:
        """Return the table in Markdown; columns of numbers are aligned right."""
        columns = range(len(self.header))
        marks = ["--:" if all(_NUMBER.match(one[at]) for one in self.rows) else "---" for at in columns]
        return "\n".join(map(table_row, (self.header, marks, *self.rows)))

    def csv(self) -> str:
        """Return the table as CSV."""
        file = io.StringIO()
        csv.writer(file, lineterminator="\n").writerows([self.header, *self.rows])
        return file.getvalue()


@dataclass(frozen=True)
class Page:
    """A page of Markdown.

    Parameters
    ----------
    title
        Heading of the page.
    parts
        Paragraphs, headings and tables in order; empty ones, and tables without rows, are left out.
    facts
        Tools and inputs of the page, one line each at the end.
    """

    title: str
    parts: Sequence[str | Table]
    facts: Mapping[str, str] = field(default_factory=dict)

    def markdown(self) -> str:
        """Return the text of the page."""
        shown = [part.markdown() if isinstance(part, Table) else part for part in self.parts if _filled(part)]
        facts = "\n".join(f"- {name}: {fact}" for name, fact in self.facts.items())
        return "\n\n".join([f"# {self.title}", *shown, *([facts] if facts else [])]) + "\n"


@dataclass(frozen=True)
class Report:
    """The result of a study, and the files that present it.

    Parameters
    ----------
    content
        Plain values: the content of the report's JSON file.
    files
        Texts and bytes by file name, in the order in which they are written.
    lines
        A summary of a few lines.
    failed
        Parts that failed, one sentence each; the report is complete otherwise.
    """

    content: dict[str, Any]
    files: Mapping[str, str | bytes]
    lines: Sequence[str] = ()
    failed: Sequence[str] = ()

    def write(self, folder: Path) -> list[Path]:
        """Write the files into an existing folder, each whole or not at all, and return their paths."""
        for name, data in self.files.items():
            write_whole(folder / name, data)
        return [folder / name for name in self.files]


def json_text(content: Any, indent: int = 2) -> str:
    """Return the text of a JSON file."""
    return json.dumps(content, indent=indent) + "\n"


def _filled(part: str | Table) -> bool:
    return bool(part.rows if isinstance(part, Table) else part)
