"""Objects of Verilator's runtime, compiled once per installation and not once per block: they take most of a small build."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from cdu_tools import cache
from cdu_tools.errors import UserError
from cdu_tools.verilator import Verilator

#: They depend on Verilator, the compiler and the options, and not on the design.
_NAMES = ("verilated.o", "verilated_dpi.o", "verilated_vpi.o", "verilated_threads.o", "verilated_cov.o", "verilated_fst_c.o")
#: What their entries in the cache are called.
_KIND = "runtime"


def ingredients(tool: Verilator, options: Sequence[str]) -> list[str]:
    """What the objects of builds with these options of Verilator depend on."""
    command = [os.environ.get("CXX") or "g++", "--version"]
    with suppress(OSError):
        command = [subprocess.run(command, capture_output=True, text=True, check=False).stdout]
    return [str(tool.program), tool.version, *command, *options]


def lend(depends: Sequence[str], build: Path) -> list[str]:
    """Put the objects of an earlier build where the makefile of the next one looks for them.

    Returns options with which make takes them: by its rules they would be older than the makefile.
    """
    build.mkdir(parents=True, exist_ok=True)
    kept = None
    with suppress(UserError):
        kept = cache.find(_KIND, depends)
    return [f"--old-file={name}" for name in (_copied(kept, build) if kept else [])]


def keep(depends: Sequence[str], build: Path) -> None:
    """Keep the objects of a finished build, where the cache can be used."""

    def fill(folder: Path) -> None:
        _copied(build, folder)

    if any((build / name).is_file() for name in _NAMES):
        with suppress(UserError):
            cache.entry(_KIND, depends, fill)


def _copied(source: Path, target: Path) -> list[str]:
    """Copy the objects that are there; their names."""
    there = [name for name in _NAMES if (source / name).is_file()]
    for name in there:
        shutil.copy(source / name, target / name)
    return there
