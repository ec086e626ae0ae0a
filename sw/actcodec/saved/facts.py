"""Facts about a saved tensor, taken from it once; all steps that decide how to keep it read them here."""

from __future__ import annotations

from torch import Tensor

from actcodec.saved.cache import Memory
from actcodec.saved.operations import Operation


class Facts(Memory):
    """A tensor with ordinary memory, and the operation that saves it.

    Parameters
    ----------
    tensor
        The saved tensor.
    operation
        The operation that saves it; None if no torch function is running.
    """

    __slots__ = ("is_argument", "nbytes", "operation")

    def __init__(self, tensor: Tensor, operation: Operation | None) -> None:
        super().__init__(tensor)
        self.operation = operation
        #: Bytes of the values, those repeated by expansion counted once.
        self.nbytes = self.layout.distinct_bytes
        #: True if the tensor shares its storage with an argument of the operation.
        self.is_argument = operation is not None and self.address in operation.storages
