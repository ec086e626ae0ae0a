"""Reading arrays and streams from files that may be anything: no more is read than what a file's first bytes announce."""

from __future__ import annotations

import io
import os
import stat
import tokenize
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from cdu_tools.errors import UserError
from cdu_tools.files import STANDARD_INPUT
from cdu_tools.mapped import LARGE_BYTES, PIECE_BYTES, MappedFiles
from cdu_tools.memory import tensor_bytes

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    from actcodec.codecs import Compressed, JpegBaseCompressed
    from actcodec.codecs.container import Entry

#: How every .npy file begins, and bytes of its version.
NPY_MAGIC, _NPY_VERSION_BYTES = b"\x93NUMPY", 2
#: Longest header of an .npy file of numbers.
_NPY_HEADER_BYTES = 10_000
_NO_ARRAY = "it is no whole .npy file; save an array of numbers with numpy.save"


@dataclass(frozen=True)
class PackedFile:
    """The content of a .cdu file: streams by name, one without a name unless the file is a container."""

    streams: dict[str, bytes | memoryview]
    container: bool

    @property
    def size(self) -> int:
        """Return the bytes of the file."""
        from actcodec.codecs.container import size_of

        lengths = {name: len(stream) for name, stream in self.streams.items()}
        return size_of(lengths) if self.container else lengths[""]

    def tensors(self) -> dict[str, Entry]:
        """Return the compressed tensors by name; raise BitstreamError for one that is not intact."""
        from actcodec.codecs.container import entry_of

        return {name: entry_of(stream) for name, stream in self.streams.items()}


def read_packed(path: Path, max_bytes: int | None, files: MappedFiles | None = None) -> PackedFile:
    """Read a stream or a container; a large file is mapped where ``files`` are given.

    Raises UserError for any other content, and if its tensors have more than ``max_bytes`` (default
    :func:`cdu_tools.memory.tensor_bytes`) together.
    """
    from actcodec.codecs import container

    limit = tensor_bytes() if max_bytes is None else max_bytes
    with opened(path) as file, naming(path):
        whole = None
        if files is not None and _left(file, 0) >= LARGE_BYTES:
            whole = files.mapped(file)[file.tell() :]
        begin = file.read(len(container.MAGIC))
        if begin != container.MAGIC:
            stream = _stream(file, begin, limit) if whole is None else _mapped_stream(whole, limit)
            return PackedFile({"": stream}, container=False)
        start = io.BytesIO(begin)

        def read(size: int) -> bytes:
            head = start.read(size)
            missing = size - len(head)
            # Nothing is allocated for what a file does not have.
            return head + file.read(min(missing, _left(file, missing)))

        return PackedFile(dict(container.streams(read, limit, whole)), container=True)


def read_either(path: Path, max_bytes: int | None) -> npt.NDArray[np.generic] | Compressed | JpegBaseCompressed:
    """Read the float32 or float16 array of an .npy file, or the compressed tensor of a stream, by the file's first bytes.

    Raises UserError for any other content, and for a tensor of more than ``max_bytes`` (default
    :func:`cdu_tools.memory.tensor_bytes`).
    """
    import numpy as np
    from actcodec.codecs import from_bytes

    limit = tensor_bytes() if max_bytes is None else max_bytes
    with opened(path) as file, naming(path):
        begin = file.read(len(NPY_MAGIC))
        if begin != NPY_MAGIC:
            return from_bytes(_stream(file, begin, limit))
        array = read_numbers(path, file, begin, limit)
    if array.dtype not in (np.float32, np.float16):
        raise UserError(f"{path} holds {array.dtype}: use float32 or float16")
    return array


@contextmanager
def opened(path: Path) -> Iterator[BinaryIO]:
    """Open a file to read; raise UserError for errors of the system."""
    try:
        # Opened anew, standard input would begin where its file does, and a socket cannot be.
        with open(0, "rb", closefd=False) if path == STANDARD_INPUT else path.open("rb") as file:
            yield file
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror or error}") from None


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Put the name of the file in front of errors of its streams."""
    from actcodec.codecs.compressed import OversizeError
    from cdu_spec.bitstream import BitstreamError

    try:
        yield
    except BitstreamError as error:
        raise UserError(f"{path}: {error}") from None
    except OversizeError as error:
        raise OversizeError(f"{path}: {error.found}", "--max-bytes") from None


def _stream(file: BinaryIO, begin: bytes, limit: int) -> bytes:
    """Return the bytes of a stream with this beginning, and one more if the file has more."""
    from actcodec.codecs.compressed import PREFIX_BYTES, check_size, header_of

    begin += file.read(PREFIX_BYTES - len(begin))
    header = header_of(begin)
    check_size(header, limit)
    # One byte more than announced tells that there are more.
    missing = max(header.stream_bytes - len(begin), 0) + 1
    return begin + file.read(min(missing, _left(file, missing)))


def _mapped_stream(whole: memoryview, limit: int) -> memoryview:
    """Return a mapped stream whose tensor is not too large."""
    from actcodec.codecs.compressed import PREFIX_BYTES, check_size, header_of

    check_size(header_of(whole[:PREFIX_BYTES]), limit)
    return whole


def read_numbers(
    path: Path, file: BinaryIO, begin: bytes, limit: int, files: MappedFiles | None = None
) -> npt.NDArray[np.generic]:
    """Read the array of an .npy file in native byte order, C contiguous.

    Parameters
    ----------
    path
        The name of the file in messages.
    file, begin
        An open file, and its first bytes, which were read already.
    limit
        Most bytes of the array.
    files
        Where given, a large array is not read into memory but mapped: the file itself where its values lie as they are needed,
        otherwise a copy. An array with its first axis innermost is read into memory.

    UserError for what is no whole .npy file of versions 1.0 to 3.0, for Python objects and for a larger array.
    """
    import numpy as np

    try:
        shape, fortran, dtype = _array_header(file, begin)
    except (ValueError, EOFError, SyntaxError, tokenize.TokenError):
        raise UserError(f"cannot read {path}: {_NO_ARRAY}") from None
    if dtype.hasobject:
        raise UserError(f"cannot read {path}: it holds Python objects; save an array of numbers with numpy.save")
    native = dtype.newbyteorder("=")
    size = prod(shape) * dtype.itemsize
    if size > limit:
        raise UserError(f"{path} holds an array of {size} bytes: {limit} are allowed, a greater --max-bytes allows more")
    if not 0 <= size <= _left(file, size):
        raise UserError(f"cannot read {path}: {_NO_ARRAY}")
    if files is not None and size >= LARGE_BYTES and not fortran:
        values = _mapped_values(path, file, dtype, size, files)
    else:
        values = np.empty(prod(shape), dtype)
        if values.size and _read_into(file, values.view(np.uint8).data) < size:
            raise UserError(f"cannot read {path}: {_NO_ARRAY}")
    try:
        array = values.reshape(shape, order="F" if fortran else "C")
    except ValueError:  # extents that numpy does not take beside one of 0
        raise UserError(f"cannot read {path}: {_NO_ARRAY}") from None
    if behind := file.read(len(NPY_MAGIC)):
        what = "another array" if behind == NPY_MAGIC else "other bytes"
        raise UserError(f"{path} has {what} behind the end of its array: write one array to a file")
    return np.ascontiguousarray(array, dtype=native).reshape(shape)


def _mapped_values(
    path: Path, file: BinaryIO, dtype: np.dtype[np.generic], size: int, files: MappedFiles
) -> npt.NDArray[np.generic]:
    """Return the values that follow in a file, in native byte order, without reading them into memory."""
    import numpy as np

    native = dtype.newbyteorder("=")
    if dtype == native and _left(file, 0) >= size and (place := file.tell()) % dtype.alignment == 0:
        whole = files.mapped(file)
        file.seek(place + size)
        return np.frombuffer(whole[place : place + size], native)
    with files.scratch() as copy:
        for begin in range(0, size, PIECE_BYTES):
            part = np.empty(min(PIECE_BYTES, size - begin) // dtype.itemsize, dtype)
            if _read_into(file, part.view(np.uint8).data) < part.nbytes:
                raise UserError(f"cannot read {path}: {_NO_ARRAY}")
            copy.write(part.astype(native, copy=False).view(np.uint8).data)
        return np.frombuffer(files.mapped(copy), native)


def _array_header(file: BinaryIO, begin: bytes) -> tuple[tuple[int, ...], bool, np.dtype[np.generic]]:
    """Shape, whether the first axis is the innermost one, and dtype; ValueError for what is no header."""
    from numpy.lib import format as npy

    begin += file.read(max(len(NPY_MAGIC) + _NPY_VERSION_BYTES - len(begin), 0))
    start = io.BytesIO(begin)
    version = npy.read_magic(start)
    # Version 3.0 differs from 2.0 in the names of fields, which arrays of numbers do not have.
    readers = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0, (3, 0): npy.read_array_header_2_0}
    if version not in readers:
        raise ValueError(f"version {version} of the format does not exist")
    shape, fortran, dtype = readers[version](_Bounded(start, file))
    if any(extent < 0 for extent in shape):
        raise ValueError(f"shape {shape} is none")
    return shape, fortran, dtype


class _Bounded:
    """The part of a file that a header may be; numpy believes any length that stands there."""

    def __init__(self, start: BinaryIO, file: BinaryIO) -> None:
        self._start, self._file = start, file

    def read(self, size: int = -1, /) -> bytes:
        """So many bytes, or what there is; ValueError for more than any header has."""
        if not 0 <= size <= _NPY_HEADER_BYTES:
            raise ValueError(f"a header of {size} bytes is none")
        head = self._start.read(size)
        return head + self._file.read(size - len(head))


def _left(file: BinaryIO, otherwise: int) -> int:
    """Return the bytes left in a file; ``otherwise`` if the file is not a regular one."""
    try:
        about = os.fstat(file.fileno())
    except io.UnsupportedOperation:  # a file within an archive
        return otherwise
    return max(about.st_size - file.tell(), 0) if stat.S_ISREG(about.st_mode) else otherwise


def _read_into(file: BinaryIO, room: memoryview) -> int:
    """Fill ``room`` as far as the file goes; the number of bytes."""
    done = 0
    while done < len(room) and (count := file.readinto(room[done:])):  # type: ignore[attr-defined]
        done += count
    return done
