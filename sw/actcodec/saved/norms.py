"""Compress tensors saved by 2-norms except for groups of values whose norm is small beside the error of compression.

The gradient of a norm is ``x / ||x||``, that of a deviation ``(x - mean) / (n std)``: smooth away from zero, with a pole there.
Autograd saves x and the norm. The norm stays exact. With a rebuilt x' the gradient is off by ``||x' - x|| / ||x||``: where that
is more than :data:`BEARABLE`, and more than the relative error of the tensor as a whole, the group's own values are kept.
"""

from __future__ import annotations

import torch
from torch import Tensor

from actcodec.saved.gradient_needs import Norm
from actcodec.saved.views import Derived, Holder, codec_of

#: Relative error of a group that is accepted ...
BEARABLE = 1 / 8
#: ... and multiple of the whole tensor's relative error that is accepted too, because the policy chose that error.
_TIMES = 2.0


def guarded(x: Tensor, source: Holder, norm: Norm) -> WeakGroups | None:
    """Return the form of ``x`` for the operation that takes ``norm`` of it; None if the form of ``source`` suffices."""
    codec = codec_of(source.form)
    if codec is None or codec.lossless:
        return None
    x = x.detach()
    error = Norm(norm.axes).of(source.form.tensor() - x)
    norms = norm.of(x)
    whole = torch.linalg.vector_norm(error) / torch.linalg.vector_norm(norms)
    # A norm of zero has the gradient zero, whatever the values.
    weak = (error > norms * (_TIMES * whole).clamp(min=BEARABLE)) & (norms > 0)
    return WeakGroups(x, source, weak) if bool(weak.any()) else None


class WeakGroups(Derived):
    """A kept tensor in which some groups of values are exact: a :class:`~actcodec.saved.forms.Form`.

    Parameters
    ----------
    x
        The saved tensor.
    source
        Holder of its kept form.
    weak
        Boolean, in the shape of ``x`` with extent 1 along the axes of a group: True for groups that are exact.
    """

    def __init__(self, x: Tensor, source: Holder, weak: Tensor) -> None:
        self.source = source
        self._weak, self._values = weak, x.masked_select(weak)

    @property
    def nbytes(self) -> int:
        """Bytes of the exact values and of the flags; the source counts the others."""
        return self._values.numel() * self._values.element_size() + self._weak.numel()

    def tensor(self) -> Tensor:
        """Return the tensor of the source with the exact values filled in."""
        return self.source.form.tensor().clone().masked_scatter_(self._weak, self._values)
