"""2-norms: a saved tensor is compressed but for the groups of values whose norm is small beside what compression does to them.

The gradient of a norm is ``x / ||x||``, that of a deviation ``(x - mean) / (n std)``: smooth away from zero, with a pole there.
Autograd saves x and the norm. The norm stays exact. With a rebuilt x' the gradient is off by ``||x' - x|| / ||x||``: where that
is more than :data:`BEARABLE`, and more than what the codec does to the tensor as a whole, the group's own values are kept.
"""

from __future__ import annotations

import torch
from torch import Tensor

from actcodec.saved.needs import Norm
from actcodec.saved.views import Derived, Holder, codec_of

#: Error of a group by its norm that is no reason to keep its values ...
BEARABLE = 1 / 8
#: ... nor is one of so many times the error of the whole tensor by its norm: the policy asked for as much.
_TIMES = 2.0


def guarded(x: Tensor, source: Holder, norm: Norm) -> WeakGroups | None:
    """The form of ``x`` for the operation that takes ``norm`` of it; None where what ``source`` holds is enough."""
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
    """A kept tensor, some groups of whose values are exact: a :class:`~actcodec.saved.forms.Form`.

    Parameters
    ----------
    x
        The tensor.
    source
        What is kept of it.
    weak
        Boolean, in the shape of ``x`` with extent 1 along the axes of a group: the groups that are exact.
    """

    def __init__(self, x: Tensor, source: Holder, weak: Tensor) -> None:
        self.source = source
        self._weak, self._values = weak, x.masked_select(weak)

    @property
    def nbytes(self) -> int:
        """Bytes of the exact values, and of which they are; the source has the others."""
        return self._values.numel() * self._values.element_size() + self._weak.numel()

    def tensor(self) -> Tensor:
        """The tensor that the source gives, with these values."""
        return self.source.form.tensor().clone().masked_scatter_(self._weak, self._values)
