"""Reading arrays and streams from files that may be anything: no more is read than what a file's first bytes announce."""

from __future__ import annotations

import io
import os
import stat
import tokenize
from collections.abc import Iterator
from contextlib import contextmanager
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from cdu_tools.errors import UserError
from cdu_tools.files import STANDARD_INPUT
from cdu_tools.memory import tensor_bytes

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    from actcodec.codecs import Compressed, JpegBaseCompressed

#: How every .npy file begins, and bytes of its version.
_NPY_MAGIC, _NPY_VERSION_BYTES = b"\x93NUMPY", 2
#: Longest header of an .npy file of floats.
_NPY_HEADER_BYTES = 10_000
_NO_ARRAY = "it is no whole .npy file; use a file that numpy.save wrote from a float array"


def read_array(path: Path, max_bytes: int | None) -> npt.NDArray[np.generic]:
    """The float array of an .npy file in native byte order.

    UserError says what else the file is, or that its array has more than ``max_bytes`` (default
    :func:`cdu_tools.memory.tensor_bytes`).
    """
    with _opened(path) as file:
        return _array(path, file, file.read(len(_NPY_MAGIC)), max_bytes)


def read_packed(path: Path, max_bytes: int | None) -> Compressed | JpegBaseCompressed:
    """The compressed tensor of a stream; UserError for what is none, and for a tensor of more than ``max_bytes``."""
    with _opened(path) as file:
        return _packed(path, file, b"", max_bytes)


def read_either(path: Path, max_bytes: int | None) -> npt.NDArray[np.generic] | Compressed | JpegBaseCompressed:
    """:func:`read_array` of a file that begins as an .npy file does, :func:`read_packed` of any other."""
    with _opened(path) as file:
        begin = file.read(len(_NPY_MAGIC))
        return _array(path, file, begin, max_bytes) if begin == _NPY_MAGIC else _packed(path, file, begin, max_bytes)


@contextmanager
def _opened(path: Path) -> Iterator[BinaryIO]:
    """A file to read; UserError for what the system says meanwhile."""
    try:
        # Opened anew, standard input would begin where its file does, and a socket cannot be.
        with open(0, "rb", closefd=False) if path == STANDARD_INPUT else path.open("rb") as file:
            yield file
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror or error}") from None


def _packed(path: Path, file: BinaryIO, begin: bytes, max_bytes: int | None) -> Compressed | JpegBaseCompressed:
    from actcodec.codecs import from_bytes
    from actcodec.codecs.compressed import PREFIX_BYTES, check_size, header_of

    limit = tensor_bytes() if max_bytes is None else max_bytes
    try:
        begin += file.read(PREFIX_BYTES - len(begin))
        header = header_of(begin)
        check_size(header, limit)
        # One byte more than announced tells that there are more.
        missing = max(header.stream_bytes - len(begin), 0) + 1
        return from_bytes(begin + file.read(min(missing, _left(file, missing))), limit)
    except UserError as error:
        raise UserError(f"{path}: {error}") from None


def _array(path: Path, file: BinaryIO, begin: bytes, max_bytes: int | None) -> npt.NDArray[np.generic]:
    import numpy as np

    try:
        shape, fortran, dtype = _array_header(file, begin)
    except (ValueError, EOFError, SyntaxError, tokenize.TokenError):
        raise UserError(f"cannot read {path}: {_NO_ARRAY}") from None
    if dtype.hasobject:
        raise UserError(f"cannot read {path}: it holds Python objects; use a file that numpy.save wrote from a float array")
    native = dtype.newbyteorder("=")
    if native not in (np.float32, np.float16):
        raise UserError(f"{path} holds {native}: use float32 or float16")
    size = prod(shape) * dtype.itemsize
    limit = tensor_bytes() if max_bytes is None else max_bytes
    if size > limit:
        raise UserError(f"{path} holds an array of {size} bytes: {limit} are allowed, a greater --max-bytes allows more")
    if not 0 <= size <= _left(file, size):
        raise UserError(f"cannot read {path}: {_NO_ARRAY}")
    values = np.empty(prod(shape), dtype)
    if values.size and _read_into(file, values.view(np.uint8).data) < size:
        raise UserError(f"cannot read {path}: {_NO_ARRAY}")
    if behind := file.read(len(_NPY_MAGIC)):
        what = "another array" if behind == _NPY_MAGIC else "other bytes"
        raise UserError(f"{path} has {what} behind the end of its array: write one array to a file")
    array = values.reshape(shape, order="F" if fortran else "C")
    return np.ascontiguousarray(array, dtype=native).reshape(shape)


def _array_header(file: BinaryIO, begin: bytes) -> tuple[tuple[int, ...], bool, np.dtype[np.generic]]:
    """Shape, whether the first axis is the innermost one, and dtype; ValueError for what is no header."""
    from numpy.lib import format as npy

    version = npy.read_magic(io.BytesIO(begin + file.read(_NPY_VERSION_BYTES)))
    readers = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}
    if version not in readers:
        raise ValueError(f"version {version} is for arrays of other types")
    shape, fortran, dtype = readers[version](_Bounded(file))
    if any(extent < 0 for extent in shape):
        raise ValueError(f"shape {shape} is none")
    return shape, fortran, dtype


class _Bounded:
    """The part of a file that a header may be; numpy believes any length that stands there."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def read(self, size: int = -1, /) -> bytes:
        """So many bytes, or what there is; ValueError for more than any header has."""
        if not 0 <= size <= _NPY_HEADER_BYTES:
            raise ValueError(f"a header of {size} bytes is none")
        return self._file.read(size)


def _left(file: BinaryIO, otherwise: int) -> int:
    """Bytes that a file still has; of what is no regular file ``otherwise``."""
    about = os.fstat(file.fileno())
    return max(about.st_size - file.tell(), 0) if stat.S_ISREG(about.st_mode) else otherwise


def _read_into(file: BinaryIO, room: memoryview) -> int:
    """Fill ``room`` as far as the file goes; the number of bytes."""
    done = 0
    while done < len(room) and (count := file.readinto(room[done:])):  # type: ignore[attr-defined]
        done += count
    return done
