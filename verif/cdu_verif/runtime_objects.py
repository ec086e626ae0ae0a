"""Objects of Verilator's runtime, compiled once per regression and not once per block."""

from __future__ import annotations

import shutil
from pathlib import Path

#: They depend on Verilator and its flags, and not on the design.
_NAMES = ("verilated.o", "verilated_dpi.o", "verilated_vpi.o", "verilated_threads.o", "verilated_cov.o", "verilated_fst_c.o")


def lend(store: Path, build: Path) -> None:
    """Put the objects of an earlier build with the same flags where the makefile of the next one looks for them."""
    build.mkdir(parents=True, exist_ok=True)
    for name in _NAMES:
        if (store / name).is_file() and not (build / name).exists():
            shutil.copy(store / name, build / name)


def keep(store: Path, build: Path) -> None:
    """Keep the objects of a finished build."""
    store.mkdir(parents=True, exist_ok=True)
    for name in _NAMES:
        if (build / name).is_file() and not (store / name).exists():
            partial = store / f"{name}.{build.parent.name}"
            shutil.copy(build / name, partial)
            partial.replace(store / name)
