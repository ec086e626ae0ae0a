"""Check that a release works outside the checkout: archives, empty environments, every extra, the commands, their bytes.

    python benchmarks/release_check.py [-o build/release] [--python 3.12]

Builds wheel and source archive into OUT/dist. For every Python of pyproject.toml that is here (on the path, or pyenv's) it
installs each into an empty virtual environment with the versions of constraints.txt and uses it from another folder: `cdu
--version` and `cdu generate`, whose files must be those of the checkout, byte for byte, except for NAME.json on another
Python. The base install must not outgrow 250 MB. Each extra then has an environment of its own: what the extra names is
imported and `pip check` finds nothing; with `train` the README's first Python runs, and a compression by the golden model
and, with a C++ compiler, by the native kernels. An extra that includes another begins with a copy of that one's
environment, as pip would install the same again. Exit code 1, with one sentence, if any of this fails.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parent.parent
CONFIGURATION = "tiny"
#: Everything that the wheel installs.
PACKAGES = (
    "cdu_tools",
    "cdu_spec",
    "actcodec",
    "cdu_driver",
    "cdu_cli",
    "cdu",
    "cdu_verif",
    "cdu_synth",
    "cdu_offload",
    "cdu_fpga",
    "cdu_soc",
    "cdu_placement",
    "cdu_peers",
    "cdu_dqt",
    "cdu_zoo",
)
#: Most bytes on the disk of an environment with the base install, those of pip and of compiled modules among them.
MOST_BYTES = 250_000_000
#: Bytes of a block of the disk, as stat(2) counts them.
_BLOCK_BYTES = 512
#: Lines of a failed program that are shown.
_SHOWN_LINES = 15

PLACES = f"""
import importlib.util, sys
for name in {PACKAGES!r}:
    origin = importlib.util.find_spec(name).origin
    if not origin.startswith(sys.prefix):
        sys.exit(f"{{name}} comes from {{origin}}")
"""
IMPORTS = """
import importlib, sys
from importlib.metadata import packages_distributions
modules = {}
for module, names in packages_distributions().items():
    for name in names:
        modules.setdefault(name.lower().replace("_", "-"), []).append(module)
for name in sys.argv[1:]:
    found = sorted(module for module in modules.get(name, []) if module.isidentifier() and not module.startswith("_"))
    if found:
        try:
            importlib.import_module(found[0])
        except RuntimeError as error:
            if "operator torchvision::" not in str(error):
                raise
            print(f"{name} left out: torchvision is of another build than torch")
    else:
        importlib.metadata.version(name)
"""
COMPRESSION = """
import actcodec, torch
from cdu_tools.errors import MissingToolError
x = torch.arange(-1024, 1024).reshape(2, 4, 8, 32) / 256
packed = actcodec.codec("jpeg-act").compress(x).to_bytes()
y = actcodec.decompress(actcodec.from_bytes(packed))
assert y.shape == x.shape and len(packed) < x.nbytes / 2
assert (x - y).norm() < 0.2 * x.norm()
try:
    native = actcodec.codec("jpeg-act", backend="native")
except MissingToolError as error:
    print(f"native kernels left out: {error}")
else:
    assert native.compress(x).to_bytes() == packed
    print("native kernels: the same bytes")
"""


class ReleaseError(Exception):
    """A fault of the release, as a sentence."""


def run(what: str, command: list[str | Path], folder: Path) -> str:
    """Return the output of a program; ReleaseError, after the last lines of its output, if it fails."""
    began = time.monotonic()
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "VIRTUAL_ENV"))}
    # Kernels are compiled anew, from the sources that are installed.
    environment["CDU_CACHE_DIR"] = str(folder / "cache")
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        print(*(done.stdout + done.stderr).splitlines()[-_SHOWN_LINES:], sep="\n", file=sys.stderr)
        raise ReleaseError(f"{what} ended with exit code {done.returncode}; the lines above are its last words.")
    print(f"{what}: {time.monotonic() - began:.0f} s", flush=True)
    return done.stdout


def project() -> dict[str, Any]:
    """The distribution as pyproject.toml describes it."""
    found: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return found


def archives(folder: Path) -> list[Path]:
    """Wheel and source archive; the wheel is built from the source archive, so that this is enough to build it."""
    run("build", [sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, ROOT], folder)
    name, version = project()["name"], project()["version"]
    found = [folder / f"{name}-{version}-py3-none-any.whl", folder / f"{name}-{version}.tar.gz"]
    for path in found:
        if not path.is_file():
            raise ReleaseError(f"`python -m build` did not write {path.name}.")
    return found


def claimed() -> list[str]:
    """Return the Pythons of pyproject.toml, such as 3.12."""
    kinds = (classifier.rpartition(" :: ") for classifier in project()["classifiers"])
    return [version for kind, _, version in kinds if kind == "Programming Language :: Python"]


def program_of(python: str) -> Path | None:
    """Return the program of a Python, such as 3.12, on the path or among pyenv's; None if it is not here."""
    versions = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    named = shutil.which(f"python{python}")
    for program in (*([Path(named)] if named else []), *sorted(versions.glob(f"{python}.*/bin/python"))):
        if not subprocess.run([program, "-c", ""], capture_output=True, check=False).returncode:
            return program
    return None


def requirements(extra: str) -> list[str]:
    """Return the requirements of an extra as pyproject.toml has them."""
    found: list[str] = project()["optional-dependencies"][extra]
    return found


def included(extra: str) -> list[str]:
    """Return the extras that an extra names."""
    return [name for one in requirements(extra) for name in re.findall(r"^actcodec\[(.*)\]$", one) for name in name.split(",")]


def in_order() -> list[str]:
    """Return all extras, each after those that it includes."""
    order: list[str] = []

    def add(extra: str) -> None:
        for one in included(extra):
            add(one)
        if extra not in order:
            order.append(extra)

    for extra in project()["optional-dependencies"]:
        add(extra)
    return order


class Environments:
    """Virtual environments of one Python in a folder, each for one extra of a wheel.

    Parameters
    ----------
    python, program
        The Python, such as 3.12, and its program.
    folder
        Folder for the environments.
    wheel
        The wheel that is installed.
    """

    def __init__(self, python: str, program: Path, folder: Path, wheel: Path) -> None:
        self.python, self._program, self._folder, self._wheel = python, program, folder, wheel

    def base(self, archive: Path) -> Path:
        """Install an archive without extras into an empty environment, and return the environment."""
        made = self._folder / f"base-{archive.suffix[1:]}"
        run(f"{self.python}: empty environment", [self._program, "-m", "venv", made], self._folder)
        run(f"{self.python}: pip install {archive.name}", [*self._pip(made), archive], self._folder)
        return made

    def with_extra(self, extra: str, base: Path) -> Path:
        """Return an environment with one extra, begun as a copy of the largest that the extra includes, or of ``base``."""
        made, begin = self._folder / extra, base
        if parts := included(extra):
            begin = self._folder / max(parts, key=lambda one: in_order().index(one))
        # Files are shared: pip replaces files, and never writes into one.
        shutil.copytree(begin, made, symlinks=True, copy_function=os.link)
        again: list[str | Path] = ["--force-reinstall", "--no-deps", self._wheel]  # scripts that name this environment
        run(f"{self.python}: copy for {extra}", [*self._pip(made), *again], self._folder)
        run(f"{self.python}: pip install [{extra}]", [*self._pip(made), f"{self._wheel}[{extra}]"], self._folder)
        return made

    def check(self, extra: str, made: Path) -> None:
        """Check that packages of an extra fit each other, that they are here, and that they can be imported."""
        python = made / "bin" / "python"
        run(f"{self.python}: pip check [{extra}]", [python, "-m", "pip", "check"], self._folder)
        names = [_distribution(one) for one in requirements(extra) if self._holds(one) and not one.startswith("actcodec[")]
        print(run(f"{self.python}: imports of [{extra}]", [python, "-c", IMPORTS, *names], self._folder), end="")

    def _pip(self, made: Path) -> list[str | Path]:
        words = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-compile", "-c"]
        return [made / "bin" / "python", *words, ROOT / "constraints.txt"]

    def _holds(self, requirement: str) -> bool:
        marker = Requirement(requirement).marker
        return marker is None or marker.evaluate({"python_version": self.python})


def _distribution(requirement: str) -> str:
    """Return the normalised name of the distribution of a requirement."""
    return canonicalize_name(Requirement(requirement).name)


def checksums(folder: Path) -> dict[str, str]:
    """SHA-256 of every file of a folder."""
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(folder.iterdir())}


def check_size(environment: Path) -> None:
    """Compile the modules of an environment and print its bytes; ReleaseError if they are more than :data:`MOST_BYTES`."""
    run("compiled modules", [environment / "bin" / "python", "-m", "compileall", "-q", environment / "lib"], environment)
    size = sum(path.lstat().st_blocks for path in environment.rglob("*")) * _BLOCK_BYTES
    print(f"{environment.name}: {size / 1e6:.0f} MB")
    if size > MOST_BYTES:
        raise ReleaseError(f"The base install has {size / 1e6:.0f} MB, more than {MOST_BYTES / 1e6:.0f} MB.")


def use(programs: Path, work: Path, name: str) -> dict[str, str]:
    """Use what is installed, from a folder of its own; the checksums of what `cdu generate` wrote."""
    work.mkdir()
    python, cdu = programs / "python", programs / "cdu"
    run(f"{name}: where it is", [python, "-c", PLACES], work)
    said = run(f"{name}: cdu --version", [cdu, "--version"], work)
    own = run("checkout: cdu --version", [Path(sys.executable).parent / "cdu", "--version"], work)
    if said != own:
        raise ReleaseError(
            f"{name} has versions {said.split()}, the checkout {own.split()}: run `pip install -e .` in the checkout."
        )
    run(f"{name}: cdu generate", [cdu, "generate", "--config", CONFIGURATION, "-o", work / "verilog"], work)
    return checksums(work / "verilog")


def use_extras(programs: Path, work: Path, name: str) -> None:
    """Use what the extra ``train`` adds: the README's first Python, and a compression by both backends."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    (snippet,) = re.findall(r"^```python\n(.*?)^```", readme, re.MULTILINE | re.DOTALL)
    run(f"{name}: README's first Python", [programs / "python", "-c", snippet], work)
    listed = run(f"{name}: cdu list", [programs / "cdu", "list"], work)
    if CONFIGURATION not in listed or "torch is not installed" in listed:
        raise ReleaseError(f"`cdu list` of {name} does not know {CONFIGURATION}, or misses a module.")
    print(run(f"{name}: actcodec", [programs / "python", "-c", COMPRESSION], work).strip())


def check(out: Path, pythons: Sequence[str] | None) -> list[str]:
    """Check everything on these Pythons, by default those of pyproject.toml, and return which are here; raise ReleaseError."""
    dist = out / "dist"
    dist.mkdir(parents=True, exist_ok=True)
    wheel, source = archives(dist)
    here = []
    with tempfile.TemporaryDirectory(prefix="cdu-release-") as name:
        checkout = Path(name)
        run("checkout: cdu generate", _own_generate(checkout / "verilog"), checkout)
        wanted = checksums(checkout / "verilog")
        for python in pythons or claimed():
            program = program_of(python)
            if program is None:
                print(f"Python {python} is not here and left out")
                continue
            here.append(python)
            with tempfile.TemporaryDirectory(prefix=f"cdu-release-{python}-") as own:
                _check_python(Environments(python, program, Path(own), wheel), Path(own), (wheel, source), wanted)
    for archive in (wheel, source):
        print(f"{hashlib.sha256(archive.read_bytes()).hexdigest()}  {archive.name}")
    return here


def _check_python(environments: Environments, folder: Path, archives: Sequence[Path], wanted: Mapping[str, str]) -> None:
    """Check archives and extras on one Python."""
    python = environments.python
    bases = []
    for archive in archives:
        bases.append(environments.base(archive))
        check_size(bases[-1])
        name = f"{python}, {archive.name}"
        made = use(bases[-1] / "bin", folder / f"use-{archive.suffix[1:]}", name)
        other = sorted(file for file in wanted.keys() | made.keys() if wanted.get(file) != made.get(file))
        if python != ".".join(map(str, sys.version_info[:2])):
            other = [file for file in other if file != f"{CONFIGURATION}.json"]
        if other:
            raise ReleaseError(f"`cdu generate` of {name} writes other bytes than the checkout: {', '.join(other)}.")
    for extra in in_order():
        made_for = environments.with_extra(extra, bases[0])
        environments.check(extra, made_for)
        if extra == "train":
            (folder / "use-train").mkdir()
            use_extras(made_for / "bin", folder / "use-train", f"{python} [train]")


def _own_generate(folder: Path) -> list[str | Path]:
    return [Path(sys.executable).parent / "cdu", "generate", "--config", CONFIGURATION, "-o", folder]


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", type=Path, default=ROOT / "build" / "release", help="where the archives go")
    parser.add_argument("--python", action="append", help="check on this Python only, such as 3.12")
    given = parser.parse_args()
    try:
        here = check(given.output.resolve(), given.python)
    except ReleaseError as failure:
        sys.exit(f"release check: {failure}")
    print(f"release check: passed on Python {', '.join(here)}")


if __name__ == "__main__":
    main()
