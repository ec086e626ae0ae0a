"""Check that a release works outside the checkout: archives, an empty environment, the commands, their bytes.

    python benchmarks/release_check.py [-o build/release]

Builds wheel and source archive into OUT/dist, installs each into an empty virtual environment with the versions of
constraints.txt, and uses it from another folder: `cdu --version`, `cdu list`, `cdu generate`, a compression by the golden model
and, with a C++ compiler, by the native kernels. The files of `cdu generate` must be those of the checkout, byte for
byte. Before that pip resolves those versions, with all extras, for every Python of pyproject.toml that is installed. Exit code
1, with one sentence, if any of this fails.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
import venv
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
CONFIGURATION = "tiny"
#: Everything that the wheel installs.
PACKAGES = ("cdu_tools", "cdu_spec", "actcodec", "cdu_driver", "cdu_offload", "cdu_cli", "cdu", "cdu_verif", "cdu_synth")
#: Extras that include all others, or are independent.
RESOLVED = ("test", "docs", "peers")
#: Lines of a failed program that are shown.
_SHOWN_LINES = 15

PLACES = f"""
import importlib.util, sys
for name in {PACKAGES!r}:
    origin = importlib.util.find_spec(name).origin
    if not origin.startswith(sys.prefix):
        sys.exit(f"{{name}} comes from {{origin}}")
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


def resolve(folder: Path) -> None:
    """Resolve all packages of constraints.txt, without installing them, for every Python that is claimed and is here."""
    for classifier in project()["classifiers"]:
        python = f"python{classifier.rpartition(' ')[2]}"
        program = shutil.which(python)
        if program is None or subprocess.run([program, "-c", ""], capture_output=True, check=False).returncode:
            print(f"{python} is not here: whether the packages resolve for it is left out")
            continue
        run(f"{python}: environment", [program, "-m", "venv", folder / python], folder)
        pip: list[str | Path] = [folder / python / "bin" / "pip", "install", "--quiet", "--disable-pip-version-check"]
        wanted = f"{ROOT}[{','.join(RESOLVED)}]"
        run(f"{python}: resolving", [*pip, "--dry-run", "-c", ROOT / "constraints.txt", wanted], folder)


def checksums(folder: Path) -> dict[str, str]:
    """SHA-256 of every file of a folder."""
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(folder.iterdir())}


def use(programs: Path, work: Path, name: str) -> dict[str, str]:
    """Use what is installed, from a folder of its own; the checksums of what `cdu generate` wrote."""
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
    """Use what the extra ``train`` adds."""
    listed = run(f"{name}: cdu list", [programs / "cdu", "list"], work)
    if CONFIGURATION not in listed or "missing: No module" in listed:
        raise ReleaseError(f"`cdu list` of {name} does not know {CONFIGURATION}, or misses a module.")
    print(run(f"{name}: actcodec", [programs / "python", "-c", COMPRESSION], work).strip())


def check(out: Path) -> None:
    """Everything; raises ReleaseError."""
    dist = out / "dist"
    dist.mkdir(parents=True, exist_ok=True)
    wheel, source = archives(dist)
    with tempfile.TemporaryDirectory(prefix="cdu-release-") as name:
        folder = Path(name)
        resolve(folder)
        venv.create(folder / "venv", with_pip=True)
        programs = folder / "venv" / "bin"
        pip: list[str | Path] = [programs / "pip", "install", "--quiet", "--disable-pip-version-check", "--no-compile"]
        for place in ("wheel", "source", "checkout"):
            (folder / place).mkdir()
        run("checkout: cdu generate", _own_generate(folder / "checkout" / "verilog"), folder / "checkout")
        wanted = checksums(folder / "checkout" / "verilog")
        for kind, archive in (("wheel", wheel), ("source", source)):
            again: list[str | Path] = ["--force-reinstall", "--no-deps"] if kind == "source" else []
            run(f"{kind}: pip install", [*pip, "-c", ROOT / "constraints.txt", *again, archive], folder)
            made = use(programs, folder / kind, kind)
            if kind == "wheel":
                run(f"{kind}[train]: pip install", [*pip, "-c", ROOT / "constraints.txt", f"{archive}[train]"], folder)
            use_extras(programs, folder / kind, kind)
            if made != wanted:
                other = sorted(file for file in wanted.keys() | made.keys() if wanted.get(file) != made.get(file))
                raise ReleaseError(
                    f"`cdu generate` of the installed {kind} writes other bytes than the checkout: {', '.join(other)}."
                )
    for archive in (wheel, source):
        print(f"{hashlib.sha256(archive.read_bytes()).hexdigest()}  {archive.name}")


def _own_generate(folder: Path) -> list[str | Path]:
    return [Path(sys.executable).parent / "cdu", "generate", "--config", CONFIGURATION, "-o", folder]


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", type=Path, default=ROOT / "build" / "release", help="where the archives go")
    try:
        check(parser.parse_args().output.resolve())
    except ReleaseError as failure:
        sys.exit(f"release check: {failure}")
    print("release check: passed")


if __name__ == "__main__":
    main()
