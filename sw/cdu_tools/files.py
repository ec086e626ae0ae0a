"""Write files atomically, and keep permissions and links of the files that they replace."""

from __future__ import annotations

import errno
import os
import re
import secrets
import stat
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from cdu_tools.errors import UserError

STANDARD_INPUT, STANDARD_OUTPUT = Path("/dev/stdin"), Path("/dev/stdout")
#: Pieces of content that are written in order.
Parts = Iterable[str | bytes | memoryview]
#: Symbolic links that the kernel follows.
_MOST_LINKS = 40
_NEW_FILE, _PRIVATE = 0o666, 0o600
_NEVER_FOLLOWED = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def write_whole(path: Path, *content: str | bytes | memoryview) -> None:
    """Write a file so that readers see either all of it or the previous content.

    A new file gets its mode from the umask. An existing file is replaced by one with its mode, and as root with its owner; a
    symbolic link is kept and its target is replaced. If a file has several names (hard links), only this name is replaced. A
    path that is no regular file (a device, a FIFO, ``/dev/stdout``) is written to.

    Parameters
    ----------
    path
        Any name that the system allows. No temporary file is left afterwards, also after an error or a signal that Python
        handles.
    content
        Texts (UTF-8) and bytes, written in order.

    Raises UserError if the file cannot be written: a directory at the name, a folder that does not exist, missing
    permission (a read-only file is not replaced), or a full disk.
    """
    write_parts(path, content)


def write_parts(path: Path, content: Parts) -> None:
    """Write as :func:`write_whole` does, with content that may be made while it is written.

    Of a file no more than one part is in memory at a time. What is no file gets its first byte when all parts are made, so that
    an error on the way leaves nothing there either.
    """
    with _refusals(path):
        there = _there(path)
        if _own_descriptor(path) is not None or not (there is None or stat.S_ISREG(there.st_mode)):
            content = list(content)
        if (descriptor := _own_descriptor(path)) is not None:
            if sys.stdout is not None:
                sys.stdout.flush()
            _write(os.dup(descriptor), content)
        elif there is None or stat.S_ISREG(there.st_mode):
            _replace(Path(os.path.realpath(path)), there, content)
        else:
            _write(os.open(path, os.O_WRONLY | os.O_NOCTTY | os.O_CLOEXEC), content)


def check_target(path: Path) -> None:
    """Raise UserError if :func:`write_whole` cannot succeed, as far as this can be known without writing."""
    with _refusals(path):
        there = _there(path)
        if _own_descriptor(path) is None and (there is None or stat.S_ISREG(there.st_mode)):
            folder = Path(os.path.realpath(path)).parent
            if not stat.S_ISDIR(folder.stat().st_mode):
                raise NotADirectoryError(None, os.strerror(errno.ENOTDIR))
            if not _may_write(folder):
                raise PermissionError(None, os.strerror(errno.EACCES))


def make_folder(path: Path) -> Path:
    """Make a folder and its parents if they are missing; UserError if this fails."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"cannot make the output directory {path}: {error.strerror}") from None
    return path


def _there(path: Path) -> os.stat_result | None:
    """Return the status of an existing path, or None; OSError for paths that are never written to."""
    try:
        there = path.stat()
    except FileNotFoundError:
        return None
    if stat.S_ISDIR(there.st_mode):
        raise IsADirectoryError(None, os.strerror(errno.EISDIR))
    if stat.S_ISREG(there.st_mode) and not _may_write(path):
        raise PermissionError(None, "it is read-only")
    return there


@contextmanager
def _refusals(path: Path) -> Iterator[None]:
    """Turn an error of the system while writing a file into a UserError."""
    try:
        yield
    except UserError:
        raise
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else None
        raise UserError(f"cannot write {path}: {reason or error}") from None


def _may_write(path: Path) -> bool:
    return os.access(path, os.W_OK, effective_ids=os.access in os.supports_effective_ids)


def _replace(path: Path, there: os.stat_result | None, content: Parts) -> None:
    """Write beside a file (or where none is) under a random name, and rename."""
    # The name is short because a name may have 255 bytes, and random so that it may be removed in any case.
    partial = path.with_name(f".cdu-{secrets.token_hex(8)}")
    try:
        # A replacement is private from the start, so that no other user holds it open when its content arrives.
        file = os.open(partial, _NEVER_FOLLOWED, _NEW_FILE if there is None else _PRIVATE)
        mode = stat.S_IMODE(os.fstat(file).st_mode if there is None else there.st_mode) & 0o777
        _write(file, content, private=True)
        if there is not None:
            with suppress(PermissionError):
                os.chown(partial, there.st_uid, there.st_gid)
        partial.chmod(mode)
        partial.replace(path)
    except BaseException:
        with suppress(OSError):
            partial.unlink()
        raise


def _write(descriptor: int, content: Parts, *, private: bool = False) -> None:
    """Write to an open file and close it."""
    with os.fdopen(descriptor, "wb") as file:
        if private:
            os.fchmod(file.fileno(), _PRIVATE)
        for part in content:
            # Names that are not UTF-8 appear in a text as surrogates.
            file.write(part.encode(errors="surrogateescape") if isinstance(part, str) else part)


def _own_descriptor(path: Path) -> int | None:
    """Return the open file of this process behind a name such as ``/dev/stdout``, at whose position writing continues."""
    for _ in range(_MOST_LINKS):
        folder = os.path.realpath(path.parent)
        if re.fullmatch(rf"/proc/(self|{os.getpid()})(/task/\d+)?/fd", folder) and path.name.isdecimal():
            return int(path.name)
        if not path.is_symlink():
            return None
        path = Path(folder, path.readlink())
    return None
