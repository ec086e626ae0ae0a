"""Find memory that was already packed, so that all operations that save it, in whatever shape, share one copy."""

from __future__ import annotations

import ctypes
import weakref
import zlib
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

import torch
from torch import Tensor
from torch.multiprocessing.reductions import StorageWeakRef

from actcodec.saved.layout import Layout

Entry = TypeVar("Entry")
_Key = tuple[int, int, torch.dtype]


class CachePlace(NamedTuple):
    """The offset and layout of a tensor within its storage."""

    offset: int  #: in elements
    layout: Layout

    @property
    def region(self) -> tuple[int, tuple[tuple[int, int], ...]]:
        """Offset, extents and steps, the same for all shapes in which the same memory can be seen without a copy."""
        return self.offset, self.layout.joined_axes

    def contains(self, other: CachePlace) -> bool:
        """Return whether ``other`` lies within this place, which must have neither gaps nor repetitions."""
        end = self.offset + self.layout.span
        return self.layout.dense and self.offset <= other.offset and other.offset + other.layout.span <= end


class Memory:
    """The memory in which a tensor has its values: storage, version, dtype, and place within the storage."""

    __slots__ = ("address", "key", "layout", "place", "storage", "tensor")

    def __init__(self, x: Tensor) -> None:
        self.tensor = x
        self.storage = x.untyped_storage()
        #: Identity of the storage, which another storage may have once this one is freed.
        self.address = self.storage._cdata
        self.key: _Key = self.address, x._version, x.dtype
        self.layout = Layout.of(x)
        self.place = CachePlace(int(x.storage_offset()), self.layout)

    def checksum(self, place: CachePlace) -> int:
        """Return a checksum of the values at a place of this storage if they may change without a new version; else 0.

        NumPy arrays and ``x.data`` write to the memory of an input on the CPU without telling autograd.
        """
        x = self.tensor
        if not x.is_cpu or (x if x._base is None else x._base).grad_fn is not None:
            return 0
        extents, steps = zip(*place.layout.joined_axes, strict=True) if place.layout.joined_axes else ((), ())
        values = x.detach().as_strided(extents, steps, place.offset).contiguous()
        # A NumPy array would keep the owner of the memory from resizing it, as FSDP does.
        return zlib.crc32((ctypes.c_char * values.nbytes).from_address(values.data_ptr()))


@dataclass(frozen=True, eq=False)
class CacheHit(Generic[Entry]):
    """An entry, and the place of the tensor that it was made from."""

    entry: Entry
    place: CachePlace


class _OfStorage(Generic[Entry]):
    """The entries of one storage."""

    def __init__(self, storage: torch.UntypedStorage) -> None:
        self.storage = StorageWeakRef(storage)  # type: ignore[no-untyped-call]
        self.entries: dict[object, tuple[weakref.ref[Entry], CachePlace, int]] = {}  #: with the checksum of the values
        self.widest: CachePlace | None = None  #: the longest place without gaps

    def get(self, memory: Memory, region: object) -> CacheHit[Entry] | None:
        """Return the living entry of a region of ``memory`` whose values have not changed, or None."""
        known, place, checksum = self.entries.get(region, (None, memory.place, 0))
        entry = None if known is None else known()
        return None if entry is None or memory.checksum(place) != checksum else CacheHit(entry, place)


class TensorCache(Generic[Entry]):
    """Entries by the identity of a tensor's memory: storage, version, region and dtype.

    Entries are held weakly; they live in autograd's graph. So are storages: as long as an address is in a key, a weak
    reference keeps torch from giving it to another storage, and a storage that has died is not found, even when other
    tensors reuse its memory.
    """

    def __init__(self) -> None:
        self._storages: dict[_Key, _OfStorage[Entry]] = {}

    def get(self, memory: Memory) -> CacheHit[Entry] | None:
        """Return the living entry of a tensor's memory, in this shape or another one, or None."""
        known = self._living(memory)
        return None if known is None else known.get(memory, memory.place.region)

    def whole(self, memory: Memory) -> CacheHit[Entry] | None:
        """Return the living entry of a larger tensor without gaps that contains a tensor's memory, or None."""
        known = self._living(memory)
        if known is None or known.widest is None or not known.widest.contains(memory.place):
            return None
        return known.get(memory, known.widest.region)

    def put(self, memory: Memory, entry: Entry) -> None:
        """Store the entry of a tensor's memory for as long as the entry and the storage live."""
        key, place = memory.key, memory.place
        known = self._living(memory)
        if known is None:
            known = self._storages[key] = _OfStorage(memory.storage)
        storages, of_storage, region = self._storages, known, place.region

        def forget(dead: weakref.ref[Entry]) -> None:
            found = of_storage.entries.get(region)
            if found is not None and found[0] is dead:
                del of_storage.entries[region]
                if not of_storage.entries and storages.get(key) is of_storage:
                    del storages[key]

        known.entries[region] = weakref.ref(entry, forget), place, memory.checksum(place)
        if place.layout.dense and (known.widest is None or place.layout.span >= known.widest.layout.span):
            known.widest = place

    def __len__(self) -> int:
        return sum(len(known.entries) for known in self._storages.values())

    def _living(self, memory: Memory) -> _OfStorage[Entry] | None:
        known = self._storages.get(memory.key)
        return None if known is None or known.storage.expired() else known  # type: ignore[no-untyped-call]
