"""Recipes of open cores to compare with: address of their sources, files of each module, and rate of the module.

The recipes are data (``peers.toml``). The user fetches the sources, which are no part of this project.
"""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from importlib.resources import files as resources
from pathlib import Path, PurePosixPath
from typing import Any

from cdu_tools import yosys
from cdu_tools.errors import UserError
from cdu_tools.near_names import unknown

from cdu_peers.elaborate import elaborate

_COMMIT = re.compile(r"[0-9a-f]{40}")
_ADDRESS = re.compile(r"https://\S+/[A-Za-z0-9._-]+")


class RecipeError(UserError):
    """Incomplete or malformed recipe."""


class CheckoutError(UserError):
    """Missing sources of a recipe, or sources of another commit; the message says what to do."""


@dataclass(frozen=True)
class PeerRecipe:
    """Recipe to synthesise one module of an open repository.

    Parameters
    ----------
    name
        Name of the row.
    address, commit, licence
        Address of the sources (as ``git clone`` takes it), their commit, and the licence that they state.
    top, files, include, defines, parameters
        Module and its sources, as for :func:`cdu_peers.elaborate.elaborate`; paths are relative to the repository.
    does
        Function of the module, a phrase.
    samples_per_cycle, rate_source
        Greatest rate at the wider of the unpacked ports in values per cycle, and its source.
    accuracy, accuracy_source
        What is known about errors, and where it was measured; both empty if nothing is.

    Raises RecipeError for a field that is missing, unknown or malformed.
    """

    name: str
    address: str
    commit: str
    licence: str
    top: str
    files: tuple[str, ...]
    does: str
    samples_per_cycle: float
    rate_source: str
    accuracy: str = ""
    accuracy_source: str = ""
    include: tuple[str, ...] = ()
    defines: Mapping[str, str] = field(default_factory=dict)
    parameters: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("licence", "top", "does", "rate_source"):
            text = getattr(self, name)
            self._check(isinstance(text, str) and bool(text), f"no {name}")
        self._check(bool(_ADDRESS.fullmatch(self.address)), f"address {self.address!r}: give https://HOST/OWNER/NAME")
        self._check(bool(_COMMIT.fullmatch(self.commit)), f"commit {self.commit!r}: give all 40 digits")
        for name in ("files", "include"):
            value = getattr(self, name)
            lists = isinstance(value, tuple) and all(isinstance(path, str) for path in value)
            self._check(lists, f"{name} are no list of texts")
        for name in ("defines", "parameters"):
            value = getattr(self, name)
            texts = isinstance(value, Mapping) and all(isinstance(text, str) for text in value.values())
            self._check(texts, f"{name} are no table of texts")
        rated = isinstance(self.samples_per_cycle, int | float) and self.samples_per_cycle > 0
        self._check(rated, f"samples_per_cycle = {self.samples_per_cycle}: give a positive number")
        self._check(bool(self.files), "no files")
        self._check(bool(self.accuracy) == bool(self.accuracy_source), "accuracy and its source come together")
        for path in map(PurePosixPath, (*self.files, *self.include)):
            self._check(not path.is_absolute() and ".." not in path.parts, f"path {path} is not one inside of the repository")

    @classmethod
    def of(cls, name: str, table: Mapping[str, Any]) -> PeerRecipe:
        """Return the recipe of a table of TOML."""
        known = {entry.name for entry in fields(cls)} - {"name"}
        for key in sorted(set(table) - known):
            raise RecipeError(f"recipe {name}: {unknown('field', key, sorted(known))}")
        lists: dict[str, Any] = {key: tuple(value) if isinstance(value, list) else value for key, value in table.items()}
        try:
            return cls(name, **lists)
        except TypeError as error:
            raise RecipeError(f"recipe {name}: {error}") from None

    @property
    def folder(self) -> str:
        """Return the name of the checkout, which is that of the repository."""
        return self.address.rsplit("/", 1)[1]

    def fetch(self, folder: Path) -> str:
        """Return the command that puts the sources into ``folder``."""
        place = shlex.quote(str(folder / self.folder))
        return f"git clone {self.address} {place} && git -C {place} checkout {self.commit}"

    def checked(self, folder: Path) -> bool:
        """Return whether the sources below ``folder`` are verified to be those of the commit; False without a git checkout.

        Raises CheckoutError if they are missing or differ from the commit.
        """
        root = folder / self.folder
        if missing := [path for path in (*self.files, *self.include) if not (root / path).exists()]:
            where = f"not here ({missing[0]} is missing)" if root.is_dir() else "not here"
            raise CheckoutError(f"{where}: {self.fetch(folder)}")
        # Without a .git of its own, git would answer for an enclosing repository.
        if not (root / ".git").exists() or shutil.which("git") is None:
            return False
        command = ["git", "-C", str(root), "diff", "--quiet", self.commit, "--", *self.files, *self.include]
        if subprocess.run(command, capture_output=True, check=False).returncode:
            place = shlex.quote(str(root))
            raise CheckoutError(f"{root} differs from commit {self.commit[:12]}: git -C {place} checkout {self.commit}")
        return True

    def verilog(self, folder: Path, build: yosys.Engine | None = None) -> str:
        """Return the module as flat Verilog-2005, from the sources below ``folder`` (:func:`elaborate`)."""
        root = folder / self.folder
        places = ([root / path for path in paths] for paths in (self.files, self.include))
        return elaborate(next(places), self.top, next(places), self.defines, self.parameters, build)

    def _check(self, holds: bool, problem: str) -> None:
        if not holds:
            raise RecipeError(f"recipe {self.name}: {problem}")


def read(text: str) -> list[PeerRecipe]:
    """Return the recipes of a TOML text, one table each.

    Raises RecipeError for a text that is not TOML or has incomplete recipes.
    """
    try:
        tables = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise RecipeError(f"the recipes are not TOML: {error}") from None
    for name, table in tables.items():
        if not isinstance(table, dict):
            raise RecipeError(f"recipe {name} is not a table")
    return [PeerRecipe.of(name, table) for name, table in tables.items()]


def recipes() -> list[PeerRecipe]:
    """Return the recipes that come with this project."""
    return read(resources(__package__).joinpath("peers.toml").read_text(encoding="utf-8"))
