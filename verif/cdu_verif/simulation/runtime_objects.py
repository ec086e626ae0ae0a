"""Verilator's runtime, compiled once per installation and not once per block: it takes most of a small build.

Its objects are lent to every build, and so are its headers, precompiled: what a design's own C++ includes is several times as
long as that of a block.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from cdu_tools import cache
from cdu_tools.errors import UserError
from cdu_tools.verilator import Verilator

#: They depend on Verilator, the compiler and the options, and not on the design.
_NAMES = (
    *("verilated.o", "verilated_dpi.o", "verilated_vpi.o", "verilated_threads.o", "verilated_cov.o"),
    *("verilated_fst_c.o", "verilated_vcd_c.o"),
)
#: What their entries in the cache are called, and those of the headers.
_KIND, _HEADERS = "runtime", "headers"
#: Includes what every design and cocotb's program include. The compiler takes NAME.gch for NAME where its options are the same.
_HEADER = "runtime.h"
_INCLUDED = "verilated.h", "verilated_vpi.h"


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


def included(depends: Sequence[str], effort: str) -> list[str]:
    """Options with which the compiler takes the precompiled headers of builds of this effort (``-O0``); none without them."""
    with suppress(UserError):
        if kept := cache.find(_HEADERS, [*depends, effort]):
            return ["-include", str(kept / _HEADER)]
    return []


def keep_included(depends: Sequence[str], effort: str, build: Path, variables: Mapping[str, str]) -> None:
    """Precompile the headers by the makefile of a finished build, where the cache can be used; it is that slow only once."""

    def fill(folder: Path) -> None:
        (build / _HEADER).write_text("".join(f"#include <{name}>\n" for name in _INCLUDED))
        target = f"{_HEADER}.fast.gch"
        command = ["make", "-C", str(build), "-f", "Vtop.mk", f"OPT_FAST={effort}", target]
        subprocess.run(command, env={**os.environ, **variables}, capture_output=True, check=True)
        shutil.copy(build / _HEADER, folder)
        shutil.move(build / target, folder / f"{_HEADER}.gch")

    # Without them builds take longer, and nothing else changes.
    with suppress(UserError, OSError, subprocess.CalledProcessError):
        cache.entry(_HEADERS, [*depends, effort], fill)


def _copied(source: Path, target: Path) -> list[str]:
    """Copy the objects that are there; their names."""
    there = [name for name in _NAMES if (source / name).is_file()]
    for name in there:
        shutil.copy(source / name, target / name)
    return there
