"""Arithmetic of ``blpa-coded`` and ``cusz`` by compiled kernels, bit for bit equal to the golden model."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from math import prod

import torch
from torch import Tensor

from actcodec.backends.job import FORMATS
from actcodec.backends.native.host import host
from actcodec.backends.native.kernels import kernels
from actcodec.backends.native.steps import ends_of
from actcodec.golden.floating import predicted as golden
from actcodec.golden.floating.predicted import Predicted, whole_cells, whole_multiples
from actcodec.golden.floating.steps import Line
from actcodec.golden.integer_coder import BYTE_VALUES, WIDTHS, CodedIntegers, deflated, entropy, inflated
from actcodec.golden.lorenzo import MAX_DIMENSIONS, cheapest_dimensions
from actcodec.golden.predicted_integers import sample

#: Number of bytes of an integer that fits no width.
_PLANES = 4
#: Least rank of tensors with kernels; torch computes lower ranks, where steps differ in a row or a sample is one row.
_LEAST_RANK = 3


def cells(x: Tensor, step: Tensor) -> Predicted:
    """Compute :func:`actcodec.golden.floating.predicted.cells`."""
    return _predicted(x, step, None, cells=True) if x.ndim >= _LEAST_RANK else golden.cells(host(x), step)


def multiples(x: Tensor, step: Tensor, dimensions: int | None = None) -> Predicted:
    """Compute :func:`actcodec.golden.floating.predicted.multiples`."""
    if x.ndim < _LEAST_RANK:
        return golden.multiples(host(x), step, dimensions)
    return _predicted(x, step, dimensions, cells=False)


def middles(
    predicted: Predicted,
    step: Tensor,
    shape: Sequence[int],
    dtype: torch.dtype,
    *,
    rectified: bool = False,
    line: Line | None = None,
) -> Tensor:
    """Compute :func:`actcodec.golden.floating.predicted.middles`."""
    y = _values(predicted, step, shape, dtype, cells=True, rectified=rectified, line=line)
    return golden.middles(predicted, step, shape, dtype, rectified=rectified, line=line) if y is None else y


def products(predicted: Predicted, step: Tensor, shape: Sequence[int], dtype: torch.dtype) -> Tensor:
    """Compute :func:`actcodec.golden.floating.predicted.products`."""
    y = _values(predicted, step, shape, dtype, cells=False)
    return golden.products(predicted, step, shape, dtype) if y is None else y


def _predicted(x: Tensor, step: Tensor, dimensions: int | None, *, cells: bool) -> Predicted:
    x = host(x)
    if dimensions is None:
        whole = whole_cells if cells else whole_multiples
        dimensions = cheapest_dimensions(whole(sample(x), step), _estimated_bits)
    rule = (step, cells, min(dimensions, x.ndim - 1))
    job: tuple[Tensor | float, ...] = (x, FORMATS[x.dtype], *_layout(x.shape, step.numel()), *rule)
    counts = torch.empty(x.shape[0], len(WIDTHS) + 1, dtype=torch.int64)
    kernels()("predicted_counts", *job, counts)
    reached = [x.numel(), *counts.sum(0).tolist()]
    codes = [torch.zeros(_bytes(count, width), dtype=torch.uint8) for count, width in zip(reached, WIDTHS, strict=False)]
    planes = torch.empty(_PLANES, reached[len(WIDTHS)], dtype=torch.uint8)
    places = torch.empty(reached[-1], dtype=torch.int64)
    kernels()("predicted_codes", *job, counts, *codes, planes, places)
    streams = _at_once(deflated, (*codes, *planes))
    return Predicted(dimensions, CodedIntegers(tuple(streams[: len(WIDTHS)]), tuple(streams[len(WIDTHS) :])), places)


def _values(
    predicted: Predicted,
    step: Tensor,
    shape: Sequence[int],
    dtype: torch.dtype,
    *,
    cells: bool,
    rectified: bool = False,
    line: Line | None = None,
) -> Tensor | None:
    """Return the values; None if torch must compute them."""
    if len(shape) < _LEAST_RANK:
        return None
    coded = predicted.coded
    streams = _at_once(inflated, map(host, (*coded.codes, *coded.planes)))
    codes, planes = streams[: len(WIDTHS)], torch.stack(streams[len(WIDTHS) :])
    y = torch.empty(tuple(shape), dtype=dtype)
    ends = (rectified, *ends_of(line), torch.finfo(dtype).max)
    sizes = [stream.numel() for stream in (*codes, planes[0])]
    rule = (step, cells, min(predicted.dimensions, y.ndim - 1))
    job = (FORMATS[dtype], *_layout(y.shape, step.numel()), *rule, *ends)
    return y if kernels()("predicted_values", *codes, planes, *sizes, *job, y) else None


def _layout(shape: Sequence[int], steps: int) -> tuple[int, ...]:
    """Return samples, rows of a sample, width, rows of a plane, planes that predict each other, rows that share a step."""
    rows = prod(shape[1:-1])
    depth = shape[-MAX_DIMENSIONS] if len(shape) > MAX_DIMENSIONS else 1
    return shape[0], rows, shape[-1], shape[-2], depth, rows if steps == 1 else rows // shape[1]


def _bytes(count: int, width: int) -> int:
    return -(-count * width // 8)


def _at_once(convert: Callable[[Tensor], Tensor], streams: Iterable[Tensor]) -> list[Tensor]:
    """Convert streams, in several threads if there are some, since zlib does not block other threads."""
    threads = torch.get_num_threads()
    if threads == 1:
        return list(map(convert, streams))
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(convert, streams))


def _estimated_bits(differences: Tensor) -> float:
    """Return about the bits of the coded differences: :func:`~actcodec.golden.integer_coder.estimated_bits`."""
    occurs = torch.zeros(len(WIDTHS) + _PLANES, BYTE_VALUES, dtype=torch.int64)
    kernels()("narrowed_bytes", differences.contiguous(), differences.numel(), occurs)
    return sum(map(entropy, occurs))
