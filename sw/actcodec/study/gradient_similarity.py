"""Compare two gradients of the same parameters.

The measure is their cosine, ``<g, g'> / (||g|| ||g'||)``, over all parameters together and for each layer alone.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from torch import Tensor

#: Layers with a smaller part of the whole gradient have only rounding errors, as biases before a normalisation.
_LEAST_PART = 1e-5


@dataclass(frozen=True)
class Likeness:
    """Comparison of a gradient with the exact one."""

    cosine: float  #: cosine over all parameters
    norm_ratio: float  #: norm of the gradient over that of the exact one
    worst_layer: str  #: module with the lowest cosine; empty if no layer has a gradient above rounding errors
    worst_cosine: float


def likeness(exact: Sequence[Tensor | None], other: Sequence[Tensor | None], layers: Sequence[str]) -> Likeness:
    """Compare two gradients, each a tensor or None for each parameter; ``layers`` are the parameters' modules."""
    whole = _Products()
    parts: defaultdict[str, _Products] = defaultdict(_Products)
    for products, layer in zip(_products(exact, other), layers, strict=True):
        whole += products
        parts[layer] += products
    cosines = {layer: part.cosine for layer, part in parts.items() if part.exact > _LEAST_PART**2 * whole.exact}
    worst = min(cosines, key=lambda layer: cosines[layer], default="")
    return Likeness(whole.cosine, math.sqrt(whole.other / whole.exact), worst, cosines.get(worst, 1.0))


def cosine(exact: Sequence[Tensor | None], other: Sequence[Tensor | None]) -> float:
    """Return the cosine of two gradients of the same parameters; 0 if one of them is zero or not finite."""
    return sum(_products(exact, other), _Products()).cosine


@dataclass(frozen=True)
class _Products:
    """Inner products of an exact gradient with itself, of another one with itself, and of both."""

    exact: float = 0.0
    other: float = 0.0
    both: float = 0.0

    def __add__(self, more: _Products) -> _Products:
        return _Products(self.exact + more.exact, self.other + more.other, self.both + more.both)

    @property
    def cosine(self) -> float:
        """Return the cosine; 0 if one of the gradients is zero or not finite."""
        norms = math.sqrt(self.exact) * math.sqrt(self.other)
        return self.both / norms if norms > 0 and math.isfinite(self.both) and math.isfinite(norms) else 0.0


def _products(exact: Sequence[Tensor | None], other: Sequence[Tensor | None]) -> Iterator[_Products]:
    """Yield the products of each parameter; None counts as zero."""
    for one, two in zip(exact, other, strict=True):
        a, b = (None if part is None else part.flatten().double() for part in (one, two))
        yield _Products(*(0.0 if x is None or y is None else float(x @ y) for x, y in ((a, a), (b, b), (a, b))))
