"""Large files that are read as memory and do not stay in it."""

from __future__ import annotations

import ctypes
import mmap
import os
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO
from weakref import WeakSet

if TYPE_CHECKING:
    from typing_extensions import Buffer

#: Bytes from which on a file is mapped; a smaller one is read into memory.
LARGE_BYTES = 1 << 25
#: Bytes of a mapped file that are read before its pages are given back.
PIECE_BYTES = 1 << 24

#: glibc's parameter of ``mallopt`` for the size from which on freed blocks go back to the system at once, and that size.
_M_MMAP_THRESHOLD, _BLOCK_BYTES = -3, 1 << 20
#: Where Linux lists the files that a process has mapped.
_MAPS = Path("/proc/self/maps")


def give_freed_blocks_back() -> None:
    """Let the process give large blocks of memory back to the system as soon as they are freed, where glibc allocates them.

    By default glibc raises that size to the size of the largest block freed so far, and keeps smaller blocks for later calls.
    """
    with suppress(AttributeError):  # of another C library
        ctypes.CDLL(None).mallopt(_M_MMAP_THRESHOLD, _BLOCK_BYTES)


class MappedFiles:
    """Files that are mapped for reading, and files without a name to write what is mapped next.

    Parameters
    ----------
    folder
        Folder of the files without a name; None for the system's folder of temporary files. Their room on the disk is free
        as soon as nothing refers to their content.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder
        self._maps: WeakSet[mmap.mmap] = WeakSet()

    def scratch(self) -> BinaryIO:
        """Return an empty file without a name, open for reading and writing."""
        return tempfile.TemporaryFile(dir=self._folder)

    def mapped(self, file: BinaryIO) -> memoryview:
        """Return the content of a file, which is not empty, as read-only memory."""
        file.flush()
        mapping = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        self._maps.add(mapping)
        return memoryview(mapping)

    def release(self) -> None:
        """Give the pages of all mapped files back; those that are read again come from the file."""
        for mapping in self._maps:
            mapping.madvise(mmap.MADV_DONTNEED)


def place_of(address: int, file: BinaryIO) -> int | None:
    """Return the place in a file of an address at which it is mapped, None if it is not mapped there.

    ``/proc/self/maps`` tells (proc(5)); where a file system gives a file another number there, the answer is None.
    """
    inode = os.fstat(file.fileno()).st_ino
    for line in _MAPS.read_text(encoding="utf-8", errors="replace").splitlines():
        span, _, offset, _, number = line.split(maxsplit=5)[:5]
        begin, end = (int(bound, 16) for bound in span.split("-"))
        if begin <= address < end:
            return address - begin + int(offset, 16) if int(number) == inode else None
    return None


def is_mapped(buffer: Buffer) -> bool:
    """Return whether bytes are those of a mapped file."""
    return isinstance(memoryview(buffer).obj, mmap.mmap)


def in_pieces(buffer: Buffer) -> Iterator[memoryview]:
    """Yield bytes in pieces of at most :data:`PIECE_BYTES`; a mapped file gives its pages back after each."""
    whole = memoryview(buffer).cast("B")
    for begin in range(0, len(whole), PIECE_BYTES):
        yield whole[begin : begin + PIECE_BYTES]
        if isinstance(whole.obj, mmap.mmap):
            whole.obj.madvise(mmap.MADV_DONTNEED)
