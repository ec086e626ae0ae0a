"""Keep one lossless bit in place of a value, for tensors of which backward needs only the region that each value lies in.

Autograd saves these tensors with all their values; :mod:`actcodec.saved.gradient_needs` lists their functions. The rebuilt
tensor has other values in the same regions, so that the gradient is the same to the last bit, whatever a codec
does to the values that another function saves of the same tensor.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import add

import torch
from torch import Tensor

from actcodec.golden.bits import pack_bits, unpack_bits
from actcodec.saved.forms import Form, distinct_bytes
from actcodec.saved.gradient_needs import REGIONS, extreme_of
from actcodec.saved.layout import Layout
from actcodec.saved.operations import Operation, plain

_SOURCE = "the region keeper"
#: Flags that are looked through at once.
_ROW = 1024


def regions_of(x: Tensor, operation: Operation) -> Form | None:
    """The form of a tensor that ``operation`` saves, or None when more than the regions of its values may be needed."""
    layout = Layout.of(x)
    if not x.is_floating_point() or x.ndim < 2 or layout.overlaps:
        return None
    function, extreme = REGIONS.get(plain(operation.function)), extreme_of(operation, x)
    if function is None and extreme is None:
        return None
    values = layout.distinct_values(x.detach())
    planes = None if function is None else function.of(operation, values)
    if planes is not None:
        return RegionBits(layout, values, planes)
    if extreme is None:
        return None
    form = ExtremeBits(layout, values, extreme(values))
    # An extreme of one or two values takes as much memory as the values.
    return form if form.nbytes < distinct_bytes(x) else None


class _Plane:
    """Booleans of any shape, one bit each."""

    def __init__(self, flags: Tensor) -> None:
        self._shape = flags.shape
        padded = flags.new_zeros(-(-flags.numel() // 8) * 8)
        padded[: flags.numel()] = flags.flatten()
        self._bytes = pack_bits(padded)

    @property
    def nbytes(self) -> int:
        return self._bytes.numel()

    def flags(self) -> Tensor:
        return unpack_bits(self._bytes)[: self._shape.numel()].view(self._shape)


class RegionBits:
    """The regions of a function that is linear within each: a :class:`~actcodec.saved.forms.Form`.

    Each region is represented by one of the tensor's own values in it, so that the form needs no limits.

    Parameters
    ----------
    layout, values
        Layout of the saved tensor; its distinct values.
    planes
        Boolean, in the shape of ``values``; regions are the combinations that occur.
    """

    def __init__(self, layout: Layout, values: Tensor, planes: Sequence[Tensor]) -> None:
        self._layout = layout
        self._representatives = _representatives(values.flatten(), [plane.flatten() for plane in planes])
        self._planes = [_Plane(plane) for plane in planes]

    @property
    def nbytes(self) -> int:
        """Bytes of the bits, and of one value per region."""
        return sum(plane.nbytes for plane in self._planes) + self._representatives.nbytes

    def tensor(self) -> Tensor:
        """Return a tensor whose values lie in the same regions as those of the saved one."""
        # A lookup is several times as fast as torch.where, whose branches no processor predicts.
        regions = reduce(add, (plane.flags().to(torch.int32) << place for place, plane in enumerate(self._planes)))
        values = self._representatives.index_select(0, regions.flatten()).view(regions.shape)
        return self._layout.restore(values, _SOURCE)


def _representatives(values: Tensor, planes: Sequence[Tensor]) -> Tensor:
    """Return a value of each region, (2 ** planes,); plane i is bit i of the index. Empty regions get any value."""
    regions = [~planes[-1], planes[-1]]
    for plane in planes[-2::-1]:
        regions = [region & side for region in regions for side in (~plane, plane)]
    return values.index_select(0, torch.cat([_first(region) for region in regions]))


def _first(flags: Tensor) -> Tensor:
    """Return the place of the first flag that is set, int64 (1,), or 0; the row that has it is found first, by vectors."""
    rows = torch.nn.functional.pad(flags.view(torch.uint8), (0, -len(flags) % _ROW)).view(-1, _ROW)
    row = rows.amax(1).argmax().view(1)
    return row * _ROW + rows.index_select(0, row).argmax()


class ExtremeBits:
    """Flags of the values that equal the extreme: a :class:`~actcodec.saved.forms.Form`.

    Parameters
    ----------
    layout, values
        Layout of the saved tensor; its distinct values.
    extreme
        Largest or smallest values, of a shape that broadcasts to that of ``values``.
    """

    def __init__(self, layout: Layout, values: Tensor, extreme: Tensor) -> None:
        self._layout, self._extreme = layout, extreme
        self._equal = _Plane((values == extreme) | (values.isnan() & extreme.isnan()))

    @property
    def nbytes(self) -> int:
        """Bytes of the bits and the extremes."""
        return self._equal.nbytes + self._extreme.numel() * self._extreme.element_size()

    def tensor(self) -> Tensor:
        """Return a tensor with the extreme where it was, and another value elsewhere."""
        other = (self._extreme == 0).to(self._extreme.dtype)
        return self._layout.restore(torch.where(self._equal.flags(), self._extreme, other), _SOURCE)
