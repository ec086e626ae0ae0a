"""Share one kept tensor among all shapes in which operations save the same memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from torch import Tensor

from actcodec.codecs import Codec
from actcodec.saved.cache import Place
from actcodec.saved.forms import Coded, Form


class Holder(Protocol):
    """The holder of a tensor's form, which may be replaced by a stronger one."""

    form: Form


class Derived:
    """A form that is derived from a kept one."""

    source: Holder


class View(Derived):
    """A part of a kept tensor, or all of it, in another shape: a :class:`~actcodec.saved.forms.Form`.

    Parameters
    ----------
    x
        Place of the saved tensor.
    source, place
        The kept tensor, and its place: the memory of ``x``, or more memory without gaps.
    """

    def __init__(self, x: Place, source: Holder, place: Place) -> None:
        self.source = source
        self._place, self._origin = x, place

    @property
    def nbytes(self) -> int:
        """Return 0, because the source counts the bytes."""
        return 0

    def tensor(self) -> Tensor:
        """Return the view of the source's tensor."""
        layout, origin = self._place.layout, self._origin.layout
        values = origin.in_memory_order(self.source.form.tensor())
        if not origin.dense:
            return layout.from_memory_order(values)
        start = values.storage_offset() + self._place.offset - self._origin.offset
        return values.as_strided(layout.size, layout.stride, start)


class Whole(Derived):
    """A tensor of another kind whose plain part is kept: a :class:`~actcodec.saved.forms.Form`.

    Parameters
    ----------
    source
        Holder of the part.
    rebuild
        Makes the tensor from its part.
    """

    def __init__(self, source: Holder, rebuild: Callable[[Tensor], Tensor]) -> None:
        self.source, self._rebuild = source, rebuild

    @property
    def nbytes(self) -> int:
        """Return 0, because the source counts the bytes."""
        return 0

    def tensor(self) -> Tensor:
        """Return the tensor made from its rebuilt part."""
        return self._rebuild(self.source.form.tensor())


def codec_of(form: Form) -> Codec | None:
    """Return the codec that compressed a form, or the form it is derived from; None if there is none."""
    while isinstance(form, Derived):
        form = form.source.form
    return form.codec if isinstance(form, Coded) else None
