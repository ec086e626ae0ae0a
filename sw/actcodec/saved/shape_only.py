"""Keep only size, stride and dtype of tensors whose values backward does not read: inputs of pooling, padding and gathering.

Autograd saves them with all their values. Tests check against gradients without hooks that these torch operations need no
value; double backward needs none either.
"""

from __future__ import annotations

from math import nan

import torch
from torch import Tensor

from actcodec.saved.gradient_needs import needs_sizes
from actcodec.saved.layout import Layout
from actcodec.saved.operations import Operation

#: On other devices backward may read the input (max pooling on Apple's GPUs does).
_DEVICES = ("cpu", "cuda")
_NUMBER_BYTES = 8
#: Used in place of a codec's name.
SHAPE = "shape"


class ShapeOnly:
    """Size and stride of a tensor: a :class:`~actcodec.saved.forms.Form`."""

    def __init__(self, x: Tensor) -> None:
        self._layout = Layout.of(x)

    @classmethod
    def of(cls, x: Tensor, operation: Operation) -> ShapeOnly | None:
        """Return the form of a tensor that ``operation`` saves, or None if its values may be needed."""
        if not needs_sizes(operation) or not x.is_floating_point() or x.ndim < 2 or x.device.type not in _DEVICES:
            return None
        return None if Layout.of(x).overlaps else cls(x)

    @property
    def nbytes(self) -> int:
        """Bytes of size and stride."""
        return 2 * _NUMBER_BYTES * len(self._layout.size)

    def tensor(self) -> Tensor:
        """Return a tensor of NaN, so that any use of a value would show in the gradient.

        A contiguous tensor on the CPU is one number expanded, which takes no memory; elsewhere strides may matter.
        """
        values = torch.full((1,), nan, dtype=self._layout.dtype, device=self._layout.device)
        if self._layout.contiguous and self._layout.device.type == "cpu":
            return values.expand(self._layout.size)
        return self._layout.restore(values.expand(self._layout.distinct_size), "the shape keeper")
