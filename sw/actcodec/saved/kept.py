"""What is kept of a saved tensor, and what the graph holds in its place."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor
from torch.autograd.graph import Node

from actcodec.saved.cache import Found, Place
from actcodec.saved.forms import Coded, Exact, Form
from actcodec.saved.regions import ExtremeBits, RegionBits
from actcodec.saved.shape_only import ShapeOnly
from actcodec.saved.statistics import TensorRecord
from actcodec.saved.views import View, codec_of

#: Forms without values, each of which serves the operation that it was made for and no other.
_WITHOUT_VALUES = (ShapeOnly, RegionBits, ExtremeBits)


@dataclass(frozen=True)
class Kept:
    """A form, and what the statistics say of it."""

    form: Form
    codec: str  #: its name, or one of the words that stand for it, as in :class:`TensorRecord`
    relative_error: float | None = None
    choice: int | None = None  #: place of the codec among all that were chosen; None where there is none

    @property
    def keeps_zeros(self) -> bool:
        """Whether what comes back is zero where the values are and nowhere else."""
        return isinstance(self.form, Exact) or (isinstance(self.form, Coded) and self.form.keeps_zeros)

    def enter(self, record: TensorRecord) -> None:
        """Make the record of a tensor say that this is kept of it."""
        record.codec, record.choice = self.codec, self.choice
        record.bytes_compressed, record.relative_error = self.form.nbytes, self.relative_error


class Saved:
    """What the graph holds in place of one distinct tensor: a form, which a stronger one may replace, and where it is counted.

    Parameters
    ----------
    form
        What backward rebuilds the tensor from.
    record
        Its entry in the statistics; None while it is counted as no activation.
    uncounted
        As what it is counted then.
    beside
        Bytes of the signs and regions that other operations keep of the same tensor; they are in the record too.
    """

    __slots__ = ("__weakref__", "beside", "form", "record", "uncounted", "weights")

    def __init__(self, form: Form, record: TensorRecord | None = None, *, uncounted: str = "", beside: int = 0) -> None:
        self.form, self.record, self.uncounted, self.beside = form, record, uncounted, beside
        #: For each operation that reads a codec's form the weight for whose gradient it does; None where it is for others, too.
        self.weights: list[Node | Tensor | None] = []

    @property
    def without_values(self) -> bool:
        """Whether no other operation can use it."""
        return isinstance(self.form, _WITHOUT_VALUES)

    @property
    def exact(self) -> bool:
        """Whether it has the tensor's own values."""
        return not self.without_values and codec_of(self.form) is None


def seen_as(x: Tensor, found: Found[Saved]) -> Saved:
    """What is kept in the shape of ``x``; no other object where it has that shape."""
    place, saved = Place.of(x), found.entry
    if place == found.place:
        return saved
    return Saved(Exact(x) if isinstance(saved.form, Exact) else View(place, saved, found.place), saved.record)


def seen_from(place: Place, saved: Saved, origin: Place) -> Form:
    """The form of a tensor at ``place`` that follows from what is kept of one at ``origin``."""
    return saved.form if place == origin else View(place, saved, origin)
