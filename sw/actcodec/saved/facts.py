"""Facts about a saved tensor, taken from it once; all steps that decide how to keep it read them here."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor, nn

from actcodec.saved.cache import CachePlace, Memory
from actcodec.saved.layout import Layout
from actcodec.saved.operations import Operation


class Facts:
    """A tensor with ordinary memory, the operation that saves it, and the modules that run meanwhile.

    Parameters
    ----------
    tensor
        The saved tensor.
    operation
        The operation that saves it; None if no torch function is running.
    modules
        Modules whose forward runs, the innermost first.
    """

    __slots__ = ("layout", "memory", "modules", "operation", "tensor")

    def __init__(self, tensor: Tensor, operation: Operation | None, modules: Sequence[nn.Module] = ()) -> None:
        self.tensor, self.operation, self.modules = tensor, operation, modules
        self.memory = Memory(tensor)
        self.layout: Layout = self.memory.place.layout

    @property
    def place(self) -> CachePlace:
        """Offset and layout within the storage."""
        return self.memory.place

    @property
    def nbytes(self) -> int:
        """Bytes of the values, those repeated by expansion counted once."""
        return self.layout.distinct_bytes

    @property
    def is_argument(self) -> bool:
        """Return whether the tensor shares its storage with an argument of the operation."""
        return self.operation is not None and self.memory.address in self.operation.storages
