"""Where built things are kept: folders named by a hash of everything that went into them, with a record of what is in them.

What is kept here is loaded and run, so it is used only where nobody else can have put it: the folder belongs to the user (or to
root) and nobody else may write to it. An entry whose files are not those of its record is made again.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import os
import secrets
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from cdu_tools.errors import UserError

#: Environment variable with the folder of the cache.
FOLDER_VARIABLE = "CDU_CACHE_DIR"
#: In an entry: the SHA-256 of each of its files.
_RECORD = "sha256.json"
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


def folder() -> Path:
    """The cache: ``$CDU_CACHE_DIR``, else ``cdu`` in the user's cache folder, else (no home) a folder for temporary files."""
    if own := os.environ.get(FOLDER_VARIABLE):
        return Path(own)
    try:
        return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "cdu"
    except RuntimeError:
        return Path(tempfile.gettempdir(), f"cdu-{os.geteuid()}")


def entry(kind: str, ingredients: Any, make: Callable[[Path], None]) -> Path:
    """The folder of an entry; ``make`` fills it when it is not there yet, or is not as it was made.

    Parameters
    ----------
    kind
        First part of its name.
    ingredients
        Everything that the content depends on, as plain values.
    make
        Fills an empty folder. The folder gets its name when it is complete, so nobody sees half of it; of several processes
        one makes it and the others wait.

    Raises UserError when the cache cannot be written, or belongs to somebody else.
    """
    target = _place(kind, ingredients)
    try:
        make_private(target.parent)
        if _is_whole(target):
            return target
        with lock(target.with_name(f".{target.name}.lock")) as alone:
            if alone:
                for left in target.parent.glob(f".{target.name}.*.partial"):
                    # Of a process that was ended.
                    _remove(left)
            if not _is_whole(target):
                partial = Path(tempfile.mkdtemp(".partial", f".{target.name}.", target.parent))
                try:
                    make(partial)
                    (partial / _RECORD).write_text(json.dumps(_contents(partial)), encoding="utf-8")
                    _put(partial, target)
                finally:
                    _remove(partial)
    except OSError as error:
        # Where locks do not work another process may have been faster: its folder holds the same.
        if not _is_whole(target):
            raise UserError(cannot_use(target.parent, f"{error.strerror or error}")) from None
    return target


def find(kind: str, ingredients: Any) -> Path | None:
    """The folder of an entry where it is there and as it was made, else None."""
    target = _place(kind, ingredients)
    with suppress(OSError):
        if target.is_dir():
            make_private(target.parent)
            return target if _is_whole(target) else None
    return None


def load_library(path: Path) -> ctypes.CDLL:
    """Load a shared library of an entry; UserError where the system does not (a folder from which nothing may be run)."""
    try:
        return ctypes.CDLL(str(path.resolve()))
    except OSError as error:
        raise UserError(cannot_use(path.parent.parent, str(error))) from None


def make_private(place: Path) -> None:
    """Make a folder of the cache when it is missing.

    Raises UserError for one that belongs to somebody else or that others may write to, OSError when it cannot be made.
    """
    place.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = place.stat()
    if not _is_ours(found):
        raise UserError(cannot_use(place, f"it belongs to user {found.st_uid}, who could change what is loaded from it"))
    if found.st_mode & _OTHERS_WRITE:
        raise UserError(cannot_use(place, "others may write to it (`chmod go-w` on it ends that)"))


def cannot_use(place: Path, reason: str) -> str:
    """The sentence for a cache that cannot be used."""
    return f"cannot use the cache {place}: {reason}; set {FOLDER_VARIABLE} to another folder"


@contextmanager
def lock(path: Path) -> Iterator[bool]:
    """Keep other processes out as long as the block runs; gives False where the file system cannot do that."""
    import fcntl

    with path.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX)
            alone = True
        except OSError:
            alone = False
        yield alone


def _place(kind: str, ingredients: Any) -> Path:
    digest = hashlib.sha256(json.dumps(ingredients, sort_keys=True).encode()).hexdigest()[:32]
    return folder() / f"{kind}-{digest}"


def _is_ours(found: os.stat_result) -> bool:
    """Whether a file is the user's own, or root's, who may change everything anyway."""
    return found.st_uid in (os.geteuid(), 0)


def _is_whole(target: Path) -> bool:
    """Whether an entry is ours alone and holds exactly what was put into it."""
    try:
        found = target.lstat()
        if not stat.S_ISDIR(found.st_mode) or not _is_ours(found) or found.st_mode & _OTHERS_WRITE:
            return False
        recorded = json.loads((target / _RECORD).read_bytes())
        return bool(recorded == _contents(target))
    except (OSError, ValueError):
        return False


def _contents(place: Path) -> dict[str, str]:
    """SHA-256 of each file of an entry but the record; ValueError for what is neither a file of ours nor a folder."""
    found = {}
    for path in place.rglob("*"):
        about = path.lstat()
        if stat.S_ISDIR(about.st_mode):
            continue
        if not stat.S_ISREG(about.st_mode) or not _is_ours(about):
            raise ValueError(f"{path} is not a file of this user")
        with path.open("rb") as file:
            found[str(path.relative_to(place))] = hashlib.file_digest(file, "sha256").hexdigest()
    found.pop(_RECORD, None)
    return found


def _put(made: Path, target: Path) -> None:
    """Give a complete folder its name; what stood there goes."""
    if os.path.lexists(target):
        # Within the same folder: that needs no permission on what is moved.
        old = target.with_name(f".{target.name}.{secrets.token_hex(4)}.partial")
        target.rename(old)
        _remove(old)
    made.rename(target)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):
            path.unlink()
