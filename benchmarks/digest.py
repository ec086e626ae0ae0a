"""Select the rows of a measurement's tables for the page of results. All rows go to CSV files beside the page."""

from __future__ import annotations

import csv
import io
import textwrap
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from cdu_tools import report

#: Characters of a line of text on a page.
WIDTH = 132
#: Beginnings of lines for the notes: command, machine, versions.
_NOTES: tuple[str, ...] = (
    "- ",
    "`cdu ",
    "Command:",
    "Written by",
    "Slowest path:",
    "SHA-256",
    "Pre-layout",
    "One module per lane",
    "Width ",
    "GPU:",
)
_NOTES += (
    "CDUs:",
    "A model, not a measurement:",
    "± is",
    "Data:",
    "Network:",
    "`module` is",
    "GIST is",
    "Goal:",
    "or the fastest",
)


@dataclass(frozen=True)
class Table(report.Table):
    """A table of a measurement, of which rows and columns can be taken."""

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def column(self, name: str) -> list[str]:
        """The cells under a name."""
        place = self.header.index(name)
        return [row[place] for row in self.rows]

    def where(self, **cells: str | tuple[str, ...]) -> Table:
        """The rows whose cells, by the column's name, are one of those that are given."""
        wanted = {self.header.index(name): (value,) if isinstance(value, str) else value for name, value in cells.items()}
        return Table(self.header, tuple(row for row in self.rows if all(row[at] in value for at, value in wanted.items())))

    def only(self, *names: str) -> Table:
        """The columns with these names."""
        places = [self.header.index(name) for name in names]
        return Table(names, tuple(tuple(row[at] for at in places) for row in self.rows))


#: Function that selects the tables of a measurement for the page.
Summary = Callable[[dict[str, Table]], str]


def read(text: str) -> Table:
    """A table from CSV."""
    header, *rows = csv.reader(io.StringIO(text))
    return Table(tuple(header), tuple(tuple(row) for row in rows))


def cells(line: str) -> tuple[str, ...]:
    """The cells of a row of a markdown table."""
    return tuple(cell.strip() for cell in line.strip().strip("|").split("|"))


def tables(markdown: str) -> tuple[list[tuple[str, Table]], list[str], list[str]]:
    """The tables of a text, each with its caption; of the lines that are in no table those for the page, and the notes.

    A caption is the line before a table if it ends with a colon, or else the last heading.
    """
    found: list[tuple[str, Table]] = []
    lines: list[str] = []
    notes: list[str] = []
    heading, before, rows = "", "", []
    for line in [*markdown.splitlines(), ""]:
        if line.startswith("|"):
            rows.append(cells(line))
            continue
        if rows:
            if before.endswith(":") and before == (lines or [""])[-1]:
                heading = before.rstrip(":")
                lines.pop()
            found.append((heading, Table(rows[0], tuple(rows[2:]))))
            rows = []
        if line.startswith("#"):
            heading = line.strip("# ")
        elif line.startswith(_NOTES):
            notes.append(f"{heading}: {line}" if heading and not line.startswith("- ") else line.removeprefix("- "))
        elif line.strip():
            lines.append(line)
        before = line or before
    return found, lines, list(dict.fromkeys(notes))


def joined(found: Sequence[tuple[str, Table]]) -> list[Table]:
    """Join tables of one kind; the first column holds their captions. Tables of a kind have most names in common."""
    kinds: list[list[tuple[str, Table]]] = []
    for caption, table in found:
        for members in kinds:
            names = members[0][1].header
            if len(names) == len(table.header) and 2 * sum(map(str.__eq__, names, table.header)) > len(names):
                members.append((caption, table))
                break
        else:
            kinds.append([(caption, table)])
    result = []
    for members in kinds:
        if len(members) == 1:
            result.append(members[0][1])
            continue
        columns = zip(*(table.header for _, table in members), strict=True)
        header = ("of", *(" / ".join(dict.fromkeys(column)) for column in columns))
        result.append(Table(header, tuple((caption, *row) for caption, table in members for row in table.rows)))
    return result


def wrapped(text: str) -> str:
    """Text in lines of a page."""
    return "\n".join(textwrap.wrap(text, WIDTH, break_long_words=False, break_on_hyphens=False))


def file_name(section: str, table: str) -> str:
    """The name of the file with all rows of a table of a section; the table may have no name."""
    return f"results_{section}{'_' * bool(table)}{table}.csv"


def digest(name: str, markdown: str, names: Sequence[str], summary: Summary) -> tuple[str, dict[str, Table], list[str]]:
    """A measurement's text for the page, its tables by the name of their file, and its notes.

    ``names`` are those of its kinds of tables, in the order in which they come first; a single one may have none.
    """
    found, lines, notes = tables(markdown)
    if not found:
        return markdown, {}, []
    kinds = joined(found)
    if len(kinds) != len(names):
        raise ValueError(f"{name} has {len(kinds)} kinds of tables ({[kind.header for kind in kinds]}), names for {len(names)}")
    by_name = dict(zip(names, kinds, strict=True))
    files = {file_name(name, key): table for key, table in by_name.items()}
    shown = " ".join(line.removeprefix("- ") for line in lines if not line.startswith("!["))
    return body(shown, summary(by_name), files, [line for line in lines if line.startswith("![")]), files, notes


def body(shown: str, summary: str, files: Iterable[str], pictures: Sequence[str] = ()) -> str:
    """A section's text for the page: its lines and summary, links to the files with all rows, and pictures."""
    rows = ", ".join(f"[{file}]({file})" for file in files)
    parts = [wrapped(shown), summary, wrapped(f"All rows: {rows}."), *pictures]
    return "\n\n".join(part for part in parts if part)


def first(table: str, /, *columns: str, **where: str | tuple[str, ...]) -> Summary:
    """The rows of a table with these cells, and of them these columns, or all."""

    def summary(found: dict[str, Table]) -> str:
        rows = found[table].where(**where)
        return (rows.only(*columns) if columns else rows).markdown()

    return summary


def listed(said: str, table: str, figure: str, /, *keys: str, **where: str | tuple[str, ...]) -> Summary:
    """A sentence that says what the figures are, and gives one of each row of a table with these cells, with its keys."""

    def summary(found: dict[str, Table]) -> str:
        rows = found[table].where(**where).only(figure, *keys).rows
        figures = [f"{value} ({', '.join(names)})" for value, *names in rows]
        return wrapped(f"{said}: {', '.join(figures)}.")

    return summary


def numbers(values: Iterable[str]) -> list[float]:
    """Cells as numbers."""
    return [float(value.replace(",", "").split()[0]) for value in values]
