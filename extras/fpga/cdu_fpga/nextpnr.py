"""Runs of nextpnr, which packs, places and routes a netlist on an FPGA.

The build is the pinned WebAssembly one of the Python package: the same program, and so the same result for a seed, on every
machine. It cannot reach absolute paths everywhere; files are named relative to its working directory.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cdu_tools.errors import not_installed

_RUN = "import sys, {module}; sys.exit({module}.run_{program}(sys.argv[1:]))"
_REPORT = "utilisation.json"
#: Words of nextpnr's errors for a design that is too large for a device, or too dense to be wired.
_TOO_LARGE = ("unable to place", "unable to find legal placement", "unable to find a placement", "no bels", "failed to place")
_TOO_DENSE = ("failed to route", "unable to route", "failed to find a route")


class NextpnrError(RuntimeError):
    """Netlist that nextpnr rejects; the message holds the end of its log."""


class DoesNotFitError(NextpnrError):
    """Netlist for which a device does not have enough room or wires."""


def version(package: str) -> str:
    """Return the version of the package ``yowasp-nextpnr-...``.

    Raises MissingToolError if it is not installed.
    """
    if not importlib.util.find_spec(_module(package)):
        raise not_installed(package, f"`pip install {package}`")
    return importlib.metadata.version(package)


def run(package: str, options: Sequence[str], directory: Path) -> dict[str, Any]:
    """Run nextpnr in ``directory`` and return its JSON report.

    Parameters
    ----------
    package
        The package that holds the nextpnr of a family of devices.
    options
        Options except that for the report; paths are relative to ``directory``.
    directory
        Existing working directory; ``nextpnr.log`` is kept in it.

    Raises
    ------
    DoesNotFitError
        if the device does not have enough room or wires for the netlist.
    NextpnrError
        if nextpnr fails for another reason.
    MissingToolError
        if it is not installed.
    """
    name = f"{package} {version(package)}"
    program = _module(package).removeprefix("yowasp_")
    code = _RUN.format(module=_module(package), program=program)
    command = [sys.executable, "-c", code, *options, "--report", _REPORT]
    (directory / _REPORT).unlink(missing_ok=True)
    log_file = directory / "nextpnr.log"
    with log_file.open("w", encoding="utf-8") as log:
        status = subprocess.run(
            command, cwd=directory, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, check=False
        ).returncode
    if status == 0:
        report: dict[str, Any] = json.loads((directory / _REPORT).read_text(encoding="utf-8"))
        return report
    lines = log_file.read_text(encoding="utf-8", errors="replace").splitlines()
    errors = [line.removeprefix("ERROR: ") for line in lines if line.startswith("ERROR")]
    told = " ".join(errors) or f"failed with status {status}: {' '.join(lines[-5:])}"
    kind = DoesNotFitError if any(words in told.lower() for words in _TOO_LARGE + _TOO_DENSE) else NextpnrError
    raise kind(f"{name}: {told}")


def _module(package: str) -> str:
    return package.replace("-", "_")
