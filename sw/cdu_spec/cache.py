"""Where built things are kept: folders named by a hash of everything that went into them."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from cdu_spec.errors import UserError

#: Environment variable with the folder of the cache.
FOLDER_VARIABLE = "CDU_CACHE_DIR"


def folder() -> Path:
    """The cache: ``$CDU_CACHE_DIR``, else ``cdu`` in the user's cache folder."""
    own = os.environ.get(FOLDER_VARIABLE)
    return Path(own) if own else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "cdu"


def entry(kind: str, ingredients: Any, make: Callable[[Path], None]) -> Path:
    """The folder of an entry; ``make`` fills it when it is not there yet.

    Parameters
    ----------
    kind
        First part of its name.
    ingredients
        Everything that the content depends on, as plain values.
    make
        Fills an empty folder. The folder gets its name when it is complete, so nobody sees half of it; of several processes
        one makes it and the others wait.

    Raises UserError when the cache cannot be written.
    """
    digest = hashlib.sha256(json.dumps(ingredients, sort_keys=True).encode()).hexdigest()[:32]
    target = folder() / f"{kind}-{digest}"
    if target.is_dir():
        return target
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with lock(target.with_name(f".{target.name}.lock")) as alone:
            if alone:
                for left in target.parent.glob(f".{target.name}.*.partial"):
                    # Of a process that was ended.
                    shutil.rmtree(left, ignore_errors=True)
            if not target.is_dir():
                partial = Path(tempfile.mkdtemp(".partial", f".{target.name}.", target.parent))
                try:
                    make(partial)
                    # Where locks do not work another process may have been faster: its folder holds the same.
                    with suppress(FileExistsError):
                        partial.rename(target)
                finally:
                    shutil.rmtree(partial, ignore_errors=True)
    except OSError as error:
        if not target.is_dir():
            raise UserError(
                f"cannot write the cache {target.parent}: {error.strerror or error}; set {FOLDER_VARIABLE} to another folder"
            ) from None
    return target


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
