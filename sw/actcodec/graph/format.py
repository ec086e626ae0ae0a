"""The interface of formats of fixed length, whose code is traced into compiled graphs."""

from __future__ import annotations

from abc import ABC, abstractmethod

import torch
from torch import Tensor

from actcodec.graph.layout import Layout, Size

#: Number formats of the values that are coded.
FLOATS = (torch.float32, torch.bfloat16, torch.float16)
#: Values of the longest vector of a CPU: runs of whole vectors are fast.
VECTOR = 16


class Format(ABC):
    """A way to keep a tensor in fewer bits, in plain torch operations.

    The operations neither depend on values nor ask the host: they run eagerly, which defines their results, and can be traced
    with fake tensors. Derived classes are frozen dataclasses; their ``repr`` identifies what they do.
    """

    name: str  #: in policies and reports

    @abstractmethod
    def fits(self, value: Tensor) -> bool:
        """Return whether shape, strides and dtype of a tensor, real or fake, suit; otherwise it is kept uncoded."""

    @abstractmethod
    def pack(self, x: Tensor) -> tuple[Tensor, ...]:
        """Return the parts of a tensor that fits.

        The first sizes of each part, except for parts of rank 0, are the leading sizes of the tensor in memory order. NaN and
        infinity make at least themselves NaN or infinite in what :meth:`unpack` returns.
        """

    @abstractmethod
    def unpack(self, parts: tuple[Tensor, ...], value: Layout) -> Tensor:
        """Return the reconstructed tensor, with the shape, strides and dtype of the tensor that was packed.

        Where inductor fuses it with what follows, it leaves out the last rounding, to bfloat16 or float16, unless
        ``torch._inductor.config.emulate_precision_casts`` is set: products then differ from eager ones by that rounding.
        """

    @abstractmethod
    def nbytes(self, value: Tensor) -> Size:
        """Return bytes of all parts of a tensor that fits."""
