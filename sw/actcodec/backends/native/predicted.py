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
from actcodec.backends.native.statistics import channel_maxima
from actcodec.backends.native.steps import ends_of
from actcodec.golden import context_coder
from actcodec.golden.context_coder import CHUNK_VALUES, RULES, TOKENS, ContextCoded
from actcodec.golden.floating import predicted as golden
from actcodec.golden.floating.predicted import Predicted, whole_cells, whole_multiples
from actcodec.golden.floating.steps import Line
from actcodec.golden.integer_coder import BYTE_VALUES, WIDTHS, CodedIntegers, deflated, entropy, inflated
from actcodec.golden.lorenzo import MAX_DIMENSIONS, MAX_MAGNITUDE, cheapest_dimensions
from actcodec.golden.predicted_integers import AUTO, CONTEXTS, DEFLATE, LEAST_VALUES, sample
from actcodec.golden.shapes import per_channel

#: Number of bytes of an integer that fits no width.
_PLANES = 4
#: Least rank of tensors with kernels; torch computes lower ranks, where steps differ in a row or a sample is one row.
_LEAST_RANK = 3


def cells(x: Tensor, step: Tensor, coder: str = DEFLATE) -> Predicted:
    """Compute :func:`actcodec.golden.floating.predicted.cells`."""
    if _takes_contexts(x, coder):
        return _in_contexts(x, step, cells=True)
    return _predicted(x, step, None, cells=True) if x.ndim >= _LEAST_RANK else golden.cells(host(x), step)


def multiples(x: Tensor, step: Tensor, dimensions: int | None = None, coder: str = DEFLATE) -> Predicted:
    """Compute :func:`actcodec.golden.floating.predicted.multiples`."""
    if _takes_contexts(x, coder):
        return _in_contexts(x, step, cells=False)
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


def _takes_contexts(x: Tensor, coder: str) -> bool:
    return coder == CONTEXTS or (coder == AUTO and x.numel() >= LEAST_VALUES)


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
    if isinstance(predicted.coded, ContextCoded):
        return _of_contexts(predicted.coded, step, shape, dtype, cells=cells, rectified=rectified, line=line)
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


def _in_contexts(x: Tensor, step: Tensor, *, cells: bool) -> Predicted:
    """Return the whole numbers of values by :mod:`actcodec.golden.context_coder`."""
    x, reach = host(x), context_coder.reach_of(x.shape[-1])
    job = (x, FORMATS[x.dtype], x.numel(), *_channels(x.shape, step), step, cells, reach)
    tried = torch.zeros(len(RULES), context_coder.CONTEXTS, TOKENS, dtype=torch.int64)
    kernels()("context_sample", *job, tried)
    logs = torch.from_numpy(context_coder.LOGS)
    rule = kernels()("context_rule", tried, logs)
    groups = list(context_coder.chunks_of(x.numel()))
    chunks, streams = sum(one.count for one in groups), sum(one.count * one.streams for one in groups)
    keys = torch.empty(chunks * CHUNK_VALUES, dtype=torch.int16)
    bit_bytes = _most_bit_bytes(x, step)
    low = torch.empty(chunks * bit_bytes, dtype=torch.uint8)
    sizes = torch.empty(chunks, 2, dtype=torch.int32)
    counts = torch.zeros(context_coder.CONTEXTS, TOKENS, dtype=torch.int64)
    kernels()("context_keys", *job, rule, keys, low, bit_bytes, sizes, counts)
    frequencies = torch.empty(counts.shape, dtype=torch.int32)
    tables = torch.empty(2 * counts.numel() + 16, dtype=torch.uint8)
    size = kernels()("context_tables", rule, counts, logs, frequencies, tables)
    states = torch.empty(streams, dtype=torch.int32)
    kernels()("context_words", keys, x.numel(), frequencies, sizes, states)
    many, bits = sizes.sum(0, dtype=torch.int64).tolist()
    words, packed = torch.empty(many, dtype=torch.int16), torch.zeros(_bytes(bits, 1), dtype=torch.uint8)
    kernels()("context_joined", keys, low, bit_bytes, sizes, chunks, words, packed)
    places = torch.zeros(0, dtype=torch.int64) if cells else golden.places_beyond(x, step)
    return Predicted(0, ContextCoded(tables[:size].clone(), sizes, states, words, packed), places)


def _most_bit_bytes(x: Tensor, step: Tensor) -> int:
    """Return the most bytes of a chunk's low bits, and of what a writer stores at once.

    Differences have up to twice the magnitude of a number, which float32 rounds.
    """
    most = 2 * min(float((channel_maxima(per_channel(x)) / step).max()) * 1.001 + 2, MAX_MAGNITUDE)
    return _bytes(CHUNK_VALUES, max(int(most).bit_length() - 2, 0)) + 8


def _of_contexts(
    coded: ContextCoded,
    step: Tensor,
    shape: Sequence[int],
    dtype: torch.dtype,
    *,
    cells: bool,
    rectified: bool,
    line: Line | None,
) -> Tensor:
    """Return the values of whole numbers in contexts; raise BitstreamError for damaged parts."""
    y = torch.empty(tuple(shape), dtype=dtype)
    parts = (coded.tables, coded.sizes, coded.states, coded.words, coded.bits)
    layout = (context_coder.reach_of(shape[-1]), FORMATS[dtype], y.numel(), *_channels(shape, step), step, cells)
    ends = (rectified, *ends_of(line), torch.finfo(dtype).max)
    if not kernels()("context_values", *(item for part in parts for item in (part, part.numel())), *layout, *ends, y):
        context_coder.check_sizes(coded, y.numel())
        context_coder.unpacked_tables(coded.tables.numpy().tobytes())
        raise context_coder.spoiled()
    return y


def _channels(shape: Sequence[int], step: Tensor) -> tuple[int, int]:
    """Return the number of steps, and how many values after one another share one."""
    return (step.numel(), prod(shape[2:])) if step.numel() > 1 else (1, prod(shape))


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
