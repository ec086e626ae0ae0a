"""Reports: tables, pages of Markdown, and the files that a command leaves in a folder."""

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

#: What stands at the right of its column: a number, alone, before a unit, or with more behind it; a cell that is left empty.
_NUMBER = re.compile(r"[-+]?\d[\d,]*(\.\d+)?( |x|%|e[-+]|$)|-?$")
#: A stroke that is text.
_STROKE = r"\|"


def table_row(cells: Iterable[object]) -> str:
    """One line of a Markdown table, for what prints lines as they come; a stroke in a cell does not end it."""
    return f"| {' | '.join(str(cell).replace('|', _STROKE) for cell in cells)} |"


@dataclass(frozen=True)
class Table:
    """Header and rows of texts; every row has as many cells as the header."""

    header: Sequence[str]
    rows: Sequence[Sequence[str]]

    def __post_init__(self) -> None:
        assert all(len(one) == len(self.header) for one in self.rows), "a row has as many cells as the header"

    def markdown(self) -> str:
        """The table for a page; a column of numbers stands at the right."""
        columns = range(len(self.header))
        marks = ["--:" if all(_NUMBER.match(one[at]) for one in self.rows) else "---" for at in columns]
        return "\n".join(map(table_row, (self.header, marks, *self.rows)))

    def csv(self) -> str:
        """The table as CSV."""
        file = io.StringIO()
        csv.writer(file, lineterminator="\n").writerows([self.header, *self.rows])
        return file.getvalue()


@dataclass(frozen=True)
class Page:
    """A page of Markdown.

    Parameters
    ----------
    title
        Its heading.
    parts
        Paragraphs, headings and tables, one after the other; empty ones, and tables without rows, are left out.
    facts
        What the page was made with, a line each at the end.
    """

    title: str
    parts: Sequence[str | Table]
    facts: Mapping[str, str] = field(default_factory=dict)

    def markdown(self) -> str:
        """The text of the page."""
        shown = [part.markdown() if isinstance(part, Table) else part for part in self.parts if _filled(part)]
        facts = "\n".join(f"- {name}: {fact}" for name, fact in self.facts.items())
        return "\n\n".join([f"# {self.title}", *shown, *([facts] if facts else [])]) + "\n"


@dataclass(frozen=True)
class Report:
    """What a study has found, and the files that say it.

    Parameters
    ----------
    content
        Plain values: what the JSON file of the report holds.
    files
        Texts and bytes by the name of their file, in the order in which they are written.
    lines
        What is to be said in a few lines, once it is there.
    failed
        What could not be done of it, a sentence each; the report is whole all the same.
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
    """The text of a JSON file."""
    return json.dumps(content, indent=indent) + "\n"


def _filled(part: str | Table) -> bool:
    return bool(part.rows if isinstance(part, Table) else part)
