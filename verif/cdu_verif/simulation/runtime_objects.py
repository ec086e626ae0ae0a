"""Verilator's runtime, compiled once per installation and not once per block: it is most of a small build.

Every build reuses its objects and its precompiled headers: the C++ text that a design includes is several times as long as
that of a block.
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

#: Names of the objects, which depend on Verilator, the compiler and the options, but not on the design.
_NAMES = (
    *("verilated.o", "verilated_dpi.o", "verilated_vpi.o", "verilated_threads.o", "verilated_cov.o"),
    *("verilated_fst_c.o", "verilated_vcd_c.o"),
)
#: Kinds of the entries in the cache: objects, and headers.
_KIND, _HEADERS = "runtime", "headers"
#: Header that includes the headers of every design and of cocotb's program. The compiler uses NAME.gch for NAME if options
#: match.
_HEADER = "runtime.h"
_INCLUDED = "verilated.h", "verilated_vpi.h"


def ingredients(tool: Verilator, options: Sequence[str]) -> list[str]:
    """Return everything that the objects of builds with these options of Verilator depend on."""
    command = [os.environ.get("CXX") or "g++", "--version"]
    with suppress(OSError):
        command = [subprocess.run(command, capture_output=True, text=True, check=False).stdout]
    return [str(tool.program), tool.version, *command, *options]


def lend(depends: Sequence[str], build: Path) -> list[str]:
    """Put the objects of an earlier build where the makefile of the next one looks for them.

    Returns options with which make accepts them; by its rules they would be older than the makefile.
    """
    build.mkdir(parents=True, exist_ok=True)
    kept = None
    with suppress(UserError):
        kept = cache.find(_KIND, depends)
    return [f"--old-file={name}" for name in (_copied(kept, build) if kept else [])]


def keep(depends: Sequence[str], build: Path) -> None:
    """Keep the objects of a finished build, if the cache can be used."""

    def fill(folder: Path) -> None:
        _copied(build, folder)

    if any((build / name).is_file() for name in _NAMES):
        with suppress(UserError):
            cache.entry(_KIND, depends, fill)


def included(depends: Sequence[str], effort: str) -> list[str]:
    """Return compiler options that use the precompiled headers of builds with ``effort`` (``-O0``); none without headers."""
    with suppress(UserError):
        if kept := cache.find(_HEADERS, [*depends, effort]):
            return ["-include", str(kept / _HEADER)]
    return []


def keep_included(depends: Sequence[str], effort: str, build: Path, variables: Mapping[str, str]) -> None:
    """Precompile the headers with the makefile of a finished build, if the cache can be used; this slow step is done once."""

    def fill(folder: Path) -> None:
        (build / _HEADER).write_text("".join(f"#include <{name}>\n" for name in _INCLUDED))
        target = f"{_HEADER}.fast.gch"
        command = ["make", "-C", str(build), "-f", "Vtop.mk", f"OPT_FAST={effort}", target]
        subprocess.run(command, env={**os.environ, **variables}, capture_output=True, check=True)
        shutil.copy(build / _HEADER, folder)
        shutil.move(build / target, folder / f"{_HEADER}.gch")

    # Without precompiled headers builds take longer, without any other effect.
    with suppress(UserError, OSError, subprocess.CalledProcessError):
        cache.entry(_HEADERS, [*depends, effort], fill)


def _copied(source: Path, target: Path) -> list[str]:
    """Copy the objects that exist and return their names."""
    there = [name for name in _NAMES if (source / name).is_file()]
    for name in there:
        shutil.copy(source / name, target / name)
    return there
