"""Find memory that was already packed, so that all operations that save it, in whatever shape, share one copy."""

from __future__ import annotations

import weakref
from dataclasses import dataclass
from typing import Generic, TypeVar

import torch
from torch import Tensor
from torch.multiprocessing.reductions import StorageWeakRef

from actcodec.saved.layout import Layout

Entry = TypeVar("Entry")
_Key = tuple[int, int, torch.dtype]


@dataclass(frozen=True)
class Place:
    """The offset and layout of a tensor within its storage."""

    offset: int
    layout: Layout

    @classmethod
    def of(cls, x: Tensor) -> Place:
        """Return the place of ``x``."""
        return cls(int(x.storage_offset()), Layout.of(x))

    @property
    def region(self) -> tuple[int, tuple[tuple[int, int], ...]]:
        """Offset, extents and steps, the same for all shapes in which the same memory can be seen without a copy."""
        return self.offset, self.layout.joined_axes

    def contains(self, other: Place) -> bool:
        """Return whether ``other`` lies within this place, which must have neither gaps nor repetitions."""
        end = self.offset + self.layout.span
        return self.layout.dense and self.offset <= other.offset and other.offset + other.layout.span <= end


@dataclass(frozen=True, eq=False)
class Found(Generic[Entry]):
    """An entry, and the place of the tensor that it was made from."""

    entry: Entry
    place: Place


class _OfStorage(Generic[Entry]):
    """The entries of one storage."""

    def __init__(self, x: Tensor) -> None:
        self.storage = StorageWeakRef(x.untyped_storage())  # type: ignore[no-untyped-call]
        self.entries: dict[object, tuple[weakref.ref[Entry], Place]] = {}
        self.widest: Place | None = None  #: the longest place without gaps

    def get(self, region: object) -> Found[Entry] | None:
        """Return the living entry of a region, or None."""
        found = self.entries.get(region)
        entry = None if found is None else found[0]()
        return None if found is None or entry is None else Found(entry, found[1])


class TensorCache(Generic[Entry]):
    """Entries by the identity of a tensor's memory: storage, version, region and dtype.

    Entries are held weakly; they live in autograd's graph. So are storages: as long as an address is in a key, a weak
    reference keeps torch from giving it to another storage, and a storage that has died is not found, even when other
    tensors reuse its memory.
    """

    def __init__(self) -> None:
        self._storages: dict[_Key, _OfStorage[Entry]] = {}

    def get(self, x: Tensor) -> Found[Entry] | None:
        """Return the living entry of the memory of ``x``, in this shape or another one, or None."""
        known = self._living(x)
        return None if known is None else known.get(Place.of(x).region)

    def whole(self, x: Tensor) -> Found[Entry] | None:
        """Return the living entry of a larger tensor without gaps that contains ``x``, or None."""
        known, place = self._living(x), Place.of(x)
        if known is None or known.widest is None or not known.widest.contains(place):
            return None
        return known.get(known.widest.region)

    def put(self, x: Tensor, entry: Entry) -> None:
        """Store the entry of ``x`` for as long as the entry and the storage of ``x`` live."""
        key, place = _key(x), Place.of(x)
        known = self._living(x)
        if known is None:
            known = self._storages[key] = _OfStorage(x)
        storages, of_storage, region = self._storages, known, place.region

        def forget(dead: weakref.ref[Entry]) -> None:
            found = of_storage.entries.get(region)
            if found is not None and found[0] is dead:
                del of_storage.entries[region]
                if not of_storage.entries and storages.get(key) is of_storage:
                    del storages[key]

        known.entries[region] = weakref.ref(entry, forget), place
        if place.layout.dense and (known.widest is None or place.layout.span >= known.widest.layout.span):
            known.widest = place

    def __len__(self) -> int:
        return sum(len(known.entries) for known in self._storages.values())

    def _living(self, x: Tensor) -> _OfStorage[Entry] | None:
        known = self._storages.get(_key(x))
        return None if known is None or known.storage.expired() else known  # type: ignore[no-untyped-call]


def _key(x: Tensor) -> _Key:
    return x.untyped_storage()._cdata, x._version, x.dtype
