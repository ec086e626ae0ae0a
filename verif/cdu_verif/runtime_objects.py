"""Objects of Verilator's runtime, compiled once per installation and not once per block: they take most of a small build."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from cdu.verilator import Verilator
from cdu_spec import cache

#: They depend on Verilator, the compiler and the options, and not on the design.
_NAMES = ("verilated.o", "verilated_dpi.o", "verilated_vpi.o", "verilated_threads.o", "verilated_cov.o", "verilated_fst_c.o")


def store(tool: Verilator, options: Sequence[str]) -> Path:
    """The folder for the objects of builds with these options of Verilator."""
    command = [os.environ.get("CXX") or "g++", "--version"]
    with suppress(OSError):
        command = [subprocess.run(command, capture_output=True, text=True, check=False).stdout]
    ingredients = [str(tool.program), tool.version, *command, *options]
    return cache.folder() / f"runtime-{hashlib.sha256(json.dumps(ingredients).encode()).hexdigest()[:32]}"


def lend(kept: Path, build: Path) -> list[str]:
    """Put the objects of an earlier build where the makefile of the next one looks for them.

    Returns options with which make takes them: by its rules they would be older than the makefile.
    """
    build.mkdir(parents=True, exist_ok=True)
    lent = [name for name in _NAMES if (kept / name).is_file()]
    for name in lent:
        shutil.copy(kept / name, build / name)
    return [f"--old-file={name}" for name in lent]


def keep(kept: Path, build: Path) -> None:
    """Keep the objects of a finished build, where the cache can be written."""
    with suppress(OSError):
        kept.mkdir(parents=True, exist_ok=True)
        for name in _NAMES:
            if (build / name).is_file() and not (kept / name).exists():
                partial = kept / f".{name}.{os.getpid()}"
                shutil.copy(build / name, partial)
                partial.replace(kept / name)
