"""Tensors of which the backward pass reads nothing but size, stride and format: inputs of pooling, padding and gathering.

Autograd saves them with all their values. That these operations need none is a fact about torch that the tests check against
gradients without hooks; double backward neither needs any.
"""

from __future__ import annotations

from math import nan

import torch
from torch import Tensor

from actcodec.saved.layout import Layout
from actcodec.saved.needs import needs_sizes
from actcodec.saved.operations import Operation

#: Elsewhere backward may read the input (max pooling on Apple's GPUs does).
_DEVICES = ("cpu", "cuda")
_NUMBER_BYTES = 8
#: In place of a codec's name.
SHAPE = "shape"


class ShapeOnly:
    """Size and stride of a tensor: a :class:`~actcodec.saved.forms.Form`."""

    def __init__(self, x: Tensor) -> None:
        self._layout = Layout.of(x)

    @classmethod
    def of(cls, x: Tensor, operation: Operation) -> ShapeOnly | None:
        """The form of a tensor that ``operation`` saves, or None when its values may be needed."""
        if not needs_sizes(operation) or not x.is_floating_point() or x.ndim < 2 or x.device.type not in _DEVICES:
            return None
        return None if Layout.of(x).overlaps else cls(x)

    @property
    def nbytes(self) -> int:
        """Bytes of size and stride."""
        return 2 * _NUMBER_BYTES * len(self._layout.size)

    def tensor(self) -> Tensor:
        """A tensor of NaN: should anything use a value, the gradient would show it.

        For a contiguous one on the CPU it is one number seen everywhere, which takes no memory; elsewhere strides may matter.
        """
        values = torch.full((1,), nan, dtype=self._layout.dtype, device=self._layout.device)
        if self._layout.contiguous and self._layout.device.type == "cpu":
            return values.expand(self._layout.size)
        return self._layout.restore(values.expand(self._layout.distinct_size), "the shape keeper")
