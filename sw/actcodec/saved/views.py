"""One kept tensor for all shapes in which operations save the same memory: what is rebuilt is seen as the original was."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from torch import Tensor

from actcodec.codecs import Codec
from actcodec.saved.cache import Place
from actcodec.saved.forms import Coded, Form


class Holder(Protocol):
    """What holds the form of a tensor; the form may be replaced by a stronger one."""

    form: Form


class Derived:
    """A form that is made of what is kept already."""

    source: Holder


class View(Derived):
    """A part of a kept tensor, or all of it, in another shape: a :class:`~actcodec.saved.forms.Form`.

    Parameters
    ----------
    x
        The tensor as it is saved.
    source, place
        What is kept already, and the place of the tensor that it was made of: the same memory as that of ``x``, or more of it
        without gaps.
    """

    def __init__(self, x: Place, source: Holder, place: Place) -> None:
        self.source = source
        self._place, self._origin = x, place

    @property
    def nbytes(self) -> int:
        """No bytes: the source has them."""
        return 0

    def tensor(self) -> Tensor:
        """The view of what the source gives."""
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
        What is kept of the part.
    rebuild
        Makes the tensor of its part.
    """

    def __init__(self, source: Holder, rebuild: Callable[[Tensor], Tensor]) -> None:
        self.source, self._rebuild = source, rebuild

    @property
    def nbytes(self) -> int:
        """No bytes: the source has them."""
        return 0

    def tensor(self) -> Tensor:
        """The tensor of its rebuilt part."""
        return self._rebuild(self.source.form.tensor())


def codec_of(form: Form) -> Codec | None:
    """The codec that compressed a form, or what it is made of."""
    while isinstance(form, Derived):
        form = form.source.form
    return form.codec if isinstance(form, Coded) else None
