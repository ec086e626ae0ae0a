"""Files that a command writes: that they can be written is known before its work begins, and none is one that it reads."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from cdu_tools.errors import UserError
from cdu_tools.files import check_target

#: Parameters of the commands that name a file to write; of --table the file is read, too.
_TARGET = "target"
_WRITTEN = (_TARGET, "json_file", "record")
_CHANGED = ("table",)
#: The parameter that names a folder to make.
_FOLDER = "output"


def check_outputs(values: Mapping[str, Any]) -> None:
    """UserError when a file to write cannot be written, is written twice, or is a file that the command reads, or is ``-``.

    Parameters
    ----------
    values
        Parameters of a command by name. Whatever names a file that is there counts as read, but for what is written.
    """
    if Path("-") in _flat(values.values()):
        raise UserError(
            "- stands for standard input and output only where --help says so: name a file, by its whole path if it is called -"
        )
    folder = values.get(_FOLDER)
    # Where results go to a folder, the name in the place of a target is one more input.
    written = _WRITTEN if folder is None else tuple(name for name in _WRITTEN if name != _TARGET)
    outputs = [(name, Path(values[name])) for name in (*written, *_CHANGED) if values.get(name) is not None]
    if folder is not None:
        _check_folder(Path(folder))
    inputs = list(_inputs({name: value for name, value in values.items() if name not in (*written, *_CHANGED, _FOLDER)}))
    for index, (name, path) in enumerate(outputs):
        if name in written:
            _check_writable(path, None if folder is None else Path(folder))
        if any(_same(path, other) for other in inputs):
            raise UserError(f"{path} is read and written: write another file")
        if any(path.absolute() == other.absolute() or _same(path, other) for _, other in outputs[:index]):
            raise UserError(f"{path} is written twice: use two files")


def _inputs(values: Mapping[str, Any]) -> Iterator[Path]:
    """Files that values name, alone, in lists, or with commas between them."""
    for item in _flat(values.values()):
        if isinstance(item, Path):
            yield item
        elif isinstance(item, str):
            yield from map(Path, {item, *item.split(",")})


def _flat(values: Iterable[Any]) -> Iterator[Any]:
    """Values, and the items of those that are lists."""
    for value in values:
        yield from value if isinstance(value, (list, tuple)) else [value]


def _same(one: Path, other: Path) -> bool:
    """Return whether two names mean one regular file; devices keep nothing that could be lost."""
    try:
        return one.is_file() and one.samefile(other)
    except OSError:
        return False


def _check_folder(path: Path) -> None:
    """UserError when a folder cannot be made for a reason that shows now."""
    try:
        there = next(place for place in (path, *path.absolute().parents) if os.path.lexists(place))
        if not there.is_dir():
            number = errno.EEXIST if there == path else errno.ENOTDIR
            raise OSError(number, os.strerror(number))
        if not os.access(there, os.W_OK | os.X_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        # The system has the last word on names, such as their length.
        path.exists()
    except OSError as error:
        raise UserError(f"cannot make the output directory {path}: {error.strerror}") from None


def _check_writable(path: Path, folder: Path | None) -> None:
    """UserError when a file cannot be made, or written over, for a reason that shows now."""
    made = folder is not None and path.parent.resolve() in (folder.resolve(), *folder.resolve().parents)
    if not (made and not path.parent.exists()):  # a folder that the command makes is not there yet
        check_target(path)
