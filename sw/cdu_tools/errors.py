"""Errors that a user can mend: the message is one sentence that says what was given, what is allowed, and what to do."""

import errno
import gzip
import os
from pathlib import Path


class UserError(Exception):
    """Base of all errors that a command reports as one sentence with exit code 2."""


class MissingToolError(UserError):
    """A simulator, synthesiser, library or data set that is not here; the message gives the command that adds it."""


def reason(error: Exception) -> str:
    """Return why a file cannot be used, in the system's words for an OSError and without Python's forms for others."""
    if isinstance(error, gzip.BadGzipFile):
        return "it is no gzip file"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    if isinstance(error, UnicodeDecodeError):
        return "it is no text in UTF-8"
    if "allow_pickle" in str(error):  # numpy's advice for a file that is none of its own
        return "it is no file of arrays"
    return str(error)


def unreadable(path: Path, folder: bool = False) -> str:
    """Return the message about a file, or a ``folder``, that is missing or of another kind."""
    kind = errno.ENOTDIR if folder else errno.EISDIR
    return f"cannot read {path}: {os.strerror(kind if path.exists() else errno.ENOENT)}"


def not_installed(what: str, how: str) -> MissingToolError:
    """Return the error of something that is not installed; ``how`` is the command, within backquotes, that adds it."""
    return MissingToolError(f"{what} is not installed: add it with {how}")


def by_system(package: str) -> str:
    """Return the advice to add a package of the system, which takes an administrator."""
    return f"the system's package `{package}`, as root on Debian and Ubuntu with `apt-get install {package}`"
