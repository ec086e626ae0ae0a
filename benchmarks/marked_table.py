"""The table of a benchmark between the marks of a page, or on the screen."""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from pathlib import Path

import torch
from cdu_tools.marks import Marks
from cdu_tools.report import Table


def measure(what: str, table: Callable[[], Table], page: Path, marks: Marks) -> None:
    """The command of a benchmark that does ``what``: make the table on one thread and write it, or with --no-page print it."""
    parser = argparse.ArgumentParser(description=what)
    parser.add_argument("--no-page", action="store_true", help="print the table, and write nothing")
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    no_page, found = parser.parse_args().no_page, table()
    if no_page:
        print(found.markdown())
    else:
        marks.put(page, f"\n\n{found.markdown()}\n\n")
