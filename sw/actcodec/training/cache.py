"""Finding a tensor again that was already packed, so that two operations that save it share one copy."""

from __future__ import annotations

import weakref
from typing import Generic, TypeVar

from torch import Tensor
from torch.multiprocessing.reductions import StorageWeakRef

Entry = TypeVar("Entry")
Key = tuple[object, ...]


class TensorCache(Generic[Entry]):
    """Entries by the identity of a tensor: storage, version, offset, shape, stride and dtype.

    Entries are held weakly; they live in autograd's graph. So are storages: as long as an address is in a key, a weak
    reference keeps torch from giving it to another storage, and a storage that has died is not found, even when other
    tensors reuse its memory.
    """

    def __init__(self) -> None:
        self._entries: dict[Key, tuple[StorageWeakRef, weakref.ref[Entry]]] = {}

    def get(self, x: Tensor) -> Entry | None:
        """The living entry of exactly this tensor, or None."""
        found = self._entries.get(_key(x))
        if found is None:
            return None
        storage, entry = found
        return None if storage.expired() else entry()  # type: ignore[no-untyped-call]

    def put(self, x: Tensor, entry: Entry) -> None:
        """Remember the entry of ``x`` while the entry and the storage of ``x`` live."""
        key = _key(x)
        entries = self._entries

        def forget(dead: weakref.ref[Entry]) -> None:
            if key in entries and entries[key][1] is dead:
                del entries[key]

        entries[key] = (StorageWeakRef(x.untyped_storage()), weakref.ref(entry, forget))  # type: ignore[no-untyped-call]

    def __len__(self) -> int:
        return len(self._entries)


def _key(x: Tensor) -> Key:
    return (x.untyped_storage()._cdata, x._version, x.storage_offset(), tuple(x.shape), tuple(x.stride()), x.dtype)
