"""Cache of built files: folders named by a hash of all their inputs, with a record of their contents.

Files in the cache are loaded and run, so they are used only if no other user can have written them: the folder belongs to the
user (or to root) and no other user may write to it. An entry with files that differ from its record is made again.
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
#: File of an entry with the SHA-256 of each of its files.
_RECORD = "sha256.json"
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


def folder() -> Path:
    """Return the cache: ``$CDU_CACHE_DIR``, else ``cdu`` in the user's cache folder, else (no home) a temporary folder."""
    if own := os.environ.get(FOLDER_VARIABLE):
        return Path(own)
    try:
        return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "cdu"
    except RuntimeError:
        return Path(tempfile.gettempdir(), f"cdu-{os.geteuid()}")


def entry(kind: str, ingredients: Any, make: Callable[[Path], None]) -> Path:
    """Return the folder of an entry; ``make`` fills it if it is missing or differs from its record.

    Parameters
    ----------
    kind
        First part of its name.
    ingredients
        Everything that the content depends on, as plain values.
    make
        Fills an empty folder. The folder gets its name when it is complete, so that no process sees an incomplete one; of
        several processes one makes it and the others wait.

    Raises UserError if the cache cannot be written, or belongs to another user.
    """
    target = _place(kind, ingredients)
    try:
        make_private(target.parent)
        if _is_whole(target):
            return target
        with lock(target.with_name(f".{target.name}.lock")) as alone:
            if alone:
                for left in target.parent.glob(f".{target.name}.*.partial"):
                    # A process that was killed has left it.
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
        # Without working locks another process may have been faster: its folder has the same content.
        if not _is_whole(target):
            raise UserError(cannot_use(target.parent, f"{error.strerror or error}")) from None
    return target


def find(kind: str, ingredients: Any) -> Path | None:
    """Return the folder of an entry if it exists and matches its record, else None."""
    target = _place(kind, ingredients)
    with suppress(OSError):
        if target.is_dir():
            make_private(target.parent)
            return target if _is_whole(target) else None
    return None


def load_library(path: Path) -> ctypes.CDLL:
    """Load a shared library of an entry; UserError if the system refuses (a folder from which nothing may be run)."""
    try:
        return ctypes.CDLL(str(path.resolve()))
    except OSError as error:
        raise UserError(cannot_use(path.parent.parent, str(error))) from None


def make_private(place: Path) -> None:
    """Make a folder of the cache if it is missing.

    Raises UserError for a folder that belongs to another user or that others may write to, OSError if it cannot be made.
    """
    place.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = place.stat()
    if not _is_ours(found):
        raise UserError(cannot_use(place, f"it belongs to user {found.st_uid}, who could change what is loaded from it"))
    if found.st_mode & _OTHERS_WRITE:
        raise UserError(cannot_use(place, "others may write to it (`chmod go-w` on it ends that)"))


def cannot_use(place: Path, reason: str) -> str:
    """Return the sentence for a cache that cannot be used."""
    return f"cannot use the cache {place}: {reason}; set {FOLDER_VARIABLE} to another folder"


@contextmanager
def lock(path: Path) -> Iterator[bool]:
    """Keep other processes out while the block runs; yields False if the file system has no locks."""
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
    """Return whether a file belongs to the user, or to root, which may change everything anyway."""
    return found.st_uid in (os.geteuid(), 0)


def _is_whole(target: Path) -> bool:
    """Return whether an entry belongs to us alone and matches its record."""
    try:
        found = target.lstat()
        if not stat.S_ISDIR(found.st_mode) or not _is_ours(found) or found.st_mode & _OTHERS_WRITE:
            return False
        recorded = json.loads((target / _RECORD).read_bytes())
        return bool(recorded == _contents(target))
    except (OSError, ValueError):
        return False


def _contents(place: Path) -> dict[str, str]:
    """Return the SHA-256 of each file of an entry except the record; ValueError if one is no file of ours."""
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
    """Rename a complete folder to its final name, and remove any previous one."""
    if os.path.lexists(target):
        # A rename within one folder needs no permission on the renamed files.
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
