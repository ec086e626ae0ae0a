"""Facts about a saved tensor, taken from it once; all steps that decide how to keep it read them here."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor, nn

from actcodec.saved.cache import Memory
from actcodec.saved.operations import Operation


class Facts(Memory):
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

    __slots__ = ("is_argument", "modules", "nbytes", "operation", "tensor")

    def __init__(self, tensor: Tensor, operation: Operation | None, modules: Sequence[nn.Module] = ()) -> None:
        super().__init__(tensor)
        self.tensor, self.operation, self.modules = tensor, operation, modules
        #: Bytes of the values, those repeated by expansion counted once.
        self.nbytes = self.layout.distinct_bytes
        #: True if the tensor shares its storage with an argument of the operation.
        self.is_argument = operation is not None and self.address in operation.storages
