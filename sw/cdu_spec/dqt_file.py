"""Quantisation tables in files: JSON objects with 64 integers, row after row, as ``divisors``, and keys about their origin."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from cdu_tools.errors import UserError
from cdu_tools.texts import read_text

from cdu_spec.dqt import Table, divisors
from cdu_spec.geometry import BLOCK_SIDE

#: Suffix of the text of a table that is a file.
SUFFIX = ".json"
_KEY = "divisors"


def read_table(path: Path) -> Table:
    """Return the 64 divisors (1..255) of a file, [vertical][horizontal frequency] in row order; UserError for anything else."""
    try:
        content = json.loads(read_text(path))
    except OSError as error:
        raise UserError(f"cannot read the quantisation table {path}: {error.strerror}") from None
    except ValueError:
        raise UserError(f"{path} is no quantisation table: it is no JSON; use a file that cdu dqt wrote") from None
    if not isinstance(content, dict) or not isinstance(content.get(_KEY), list):
        raise UserError(f"{path} is no quantisation table: it has no list {_KEY!r}; use a file that cdu dqt wrote")
    try:
        return divisors(content[_KEY])
    except ValueError as error:
        raise UserError(f"{path}: {error}") from None


def table_text(table: Sequence[int], about: Mapping[str, Any]) -> str:
    """Return the file of 64 divisors, one line per row of the table, with the facts ``about`` them.

    ValueError for an invalid table.
    """
    checked = divisors(table)
    rows = (checked[begin : begin + BLOCK_SIDE] for begin in range(0, len(checked), BLOCK_SIDE))
    lines = [f"  {json.dumps(key)}: {json.dumps(value)}" for key, value in about.items()]
    lines.append(f'  "{_KEY}": [\n    ' + ",\n    ".join(", ".join(map(str, row)) for row in rows) + "\n  ]")
    return "{\n" + ",\n".join(lines) + "\n}\n"
