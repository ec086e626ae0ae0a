"""Coding of tensors of whole numbers, predicted by their neighbours and entropy-coded.

Coder ``deflate`` codes the differences of Lorenzo's prediction (:mod:`actcodec.golden.integer_coder`), some samples at a time;
coder ``contexts`` predicts by itself (:mod:`actcodec.golden.context_coder`). Coder ``auto`` is ``contexts`` in kernels,
from :data:`LEAST_VALUES` values on, and ``deflate`` elsewhere, as here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import prod

import torch
from torch import Tensor

from actcodec.golden import context_coder
from actcodec.golden.context_coder import ContextCoded
from actcodec.golden.integer_coder import CodedIntegers, IntegerDecoder, IntegerEncoder
from actcodec.golden.lorenzo import cheapest_dimensions, differences, sums
from actcodec.golden.pieces import piece_values

#: Coders of whole numbers.
AUTO, DEFLATE, CONTEXTS = CODERS = "auto", "deflate", "contexts"
#: Least number of values for which ``auto`` is ``contexts``, whose tables and states take more bytes than fewer values save.
LEAST_VALUES = 256
Coded = CodedIntegers | ContextCoded
#: Sizes of the sample by which the number of dimensions is chosen: values, and least extent of all axes but the first.
_SAMPLE_VALUES, _SAMPLE_EXTENT = 1 << 15, 8


def encode(x: Tensor, quantised: Callable[[Tensor], Tensor], dimensions: int | None, coder: str = DEFLATE) -> tuple[int, Coded]:
    """Return the number of axes that predict, 0 for coder ``contexts``, and the coded residuals of prediction.

    Parameters
    ----------
    x
        Tensor of any shape and dtype.
    quantised
        Function that returns whole numbers, int32, magnitudes up to :data:`~actcodec.golden.lorenzo.MAX_MAGNITUDE`, of some
        samples of x, or of the first places along other axes of them.
    dimensions
        Number of axes that predict, 0 to 3, selected by :func:`~actcodec.golden.lorenzo.prediction_axes`. None: the number that
        makes the fewest bits for the first samples or a part of them. Coder ``contexts`` ignores it.
    coder
        One of :data:`CODERS`.
    """
    if coder == CONTEXTS:
        return 0, context_coder.encode(quantised(x), x.shape[-1])
    if dimensions is None:
        dimensions = cheapest_dimensions(quantised(sample(x)))
    encoder = IntegerEncoder(x.device)
    for samples in sample_pieces(tuple(x.shape), x.device):
        encoder.add(differences(quantised(x[samples]), dimensions))
    return dimensions, encoder.coded()


def decode(coded: Coded, shape: tuple[int, ...], dimensions: int) -> Iterator[tuple[slice, Tensor]]:
    """Yield samples of a tensor of this shape and their whole numbers, int32 (samples, ...), from :func:`encode`."""
    if isinstance(coded, ContextCoded):
        yield slice(0, shape[0]), context_coder.decode(coded, prod(shape), shape[-1]).view(shape)
        return
    decoder = IntegerDecoder(coded)
    for samples in sample_pieces(shape, coded.codes[0].device):
        piece = (samples.stop - samples.start, *shape[1:])
        yield samples, sums(decoder.take(prod(piece)).view(piece), dimensions)


def sample_pieces(shape: tuple[int, ...], device: torch.device) -> Iterator[slice]:
    """Return slices of samples that predict within themselves; a tensor of rank 1 is one piece."""
    if len(shape) == 1:
        return iter((slice(0, shape[0]),))
    step = max(piece_values(prod(shape), device) // prod(shape[1:]), 1)
    return (slice(first, min(first + step, shape[0])) for first in range(0, shape[0], step))


def sample(x: Tensor) -> Tensor:
    """Return a view of the first samples of a tensor, or of a part of them, for choosing the axes that predict."""
    part = x
    for axis, extent in enumerate(x.shape):
        least = _SAMPLE_EXTENT if axis else 1
        part = part.narrow(axis, 0, min(extent, max(least, -(-_SAMPLE_VALUES * extent // part.numel()))))
    return part
