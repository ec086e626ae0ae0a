"""Objects that the graph holds in place of saved tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from torch import Tensor
from torch.autograd.graph import Node

from actcodec.saved.cache import CacheHit, CachePlace
from actcodec.saved.forms import Coded, Exact, Form
from actcodec.saved.regions import ExtremeBits, RegionBits
from actcodec.saved.shape_only import ShapeOnly
from actcodec.saved.statistics import TensorRecord
from actcodec.saved.views import View, codec_of

#: Forms without values, each of which serves only the operation that it was made for.
_WITHOUT_VALUES = (ShapeOnly, RegionBits, ExtremeBits)


@dataclass(frozen=True)
class Kept:
    """A form, with its entries for the statistics."""

    form: Form
    codec: str  #: name of the codec, or a word in its place, as in :class:`TensorRecord`
    relative_error: float | None = None
    choice: int | None = None  #: index of the codec among all that were chosen; None if there is none
    end: Callable[[], Kept] | None = None  #: ends compression that has begun, and returns what is kept; else None

    @property
    def nbytes(self) -> int:
        """Return the bytes of the form; 0 as long as they are not known."""
        return self.form.nbytes if self.end is None else 0

    @property
    def keeps_zeros(self) -> bool:
        """Return whether the rebuilt tensor is zero exactly where the saved one is."""
        return isinstance(self.form, Exact) or (isinstance(self.form, Coded) and self.form.keeps_zeros)

    def enter(self, record: TensorRecord) -> None:
        """Write codec, bytes and error of this form into the record of a tensor."""
        record.codec, record.choice = self.codec, self.choice
        record.bytes_compressed, record.relative_error = self.nbytes, self.relative_error


class Begun:
    """Compression of one tensor that has begun on a device, and ends after that of the next or when its form is used."""

    def __init__(self) -> None:
        #: Holders of the tensor's form, the one with its record first, and the function that ends its compression; or None.
        self.pending: tuple[Sequence[Saved], Callable[[], Kept]] | None = None

    def end(self) -> None:
        """End what has begun, and enter it in its record; UserError as from the codec."""
        if self.pending is None:
            return
        (holders, end), self.pending = self.pending, None
        kept, first = end(), holders[0]
        for saved in holders:
            saved.form = kept.form
        assert first.record is not None
        kept.enter(first.record)
        first.record.bytes_compressed += first.beside


class Saved:
    """The object that the graph holds for one distinct tensor: a replaceable form, and its place in the statistics.

    Parameters
    ----------
    form
        The form from which backward rebuilds the tensor.
    record
        The tensor's entry in the statistics; None if it does not count as an activation.
    uncounted
        Kind under which a tensor without record is counted.
    beside
        Bytes of signs and regions that other operations keep of the same tensor; the record includes them.
    """

    __slots__ = ("__weakref__", "beside", "form", "record", "uncounted", "weights")

    def __init__(self, form: Form, record: TensorRecord | None = None, *, uncounted: str = "", beside: int = 0) -> None:
        self.form, self.record, self.uncounted, self.beside = form, record, uncounted, beside
        #: For each operation that reads a codec's form: the weight whose gradient needs it, or None if other gradients need it
        #: too.
        self.weights: list[Node | Tensor | None] = []

    @property
    def without_values(self) -> bool:
        """Return whether no other operation can use the form."""
        return isinstance(self.form, _WITHOUT_VALUES)

    @property
    def exact(self) -> bool:
        """Return whether the form has the tensor's own values."""
        return not self.without_values and codec_of(self.form) is None


def seen_as(x: Tensor, place: CachePlace, found: CacheHit[Saved]) -> Saved:
    """Return the saved tensor in the shape of ``x``, which is at ``place``; the same object if it has that shape already."""
    saved = found.entry
    if place == found.place:
        return saved
    return Saved(Exact(x) if isinstance(saved.form, Exact) else View(place, saved, found.place), saved.record)


def seen_from(place: CachePlace, saved: Saved, origin: CachePlace) -> Form:
    """Return the form of a tensor at ``place``, derived from the form of the one at ``origin``."""
    return saved.form if place == origin else View(place, saved, origin)
