"""Arithmetic of ``blpa-coded`` and ``cusz``: values as whole numbers of steps, predicted and entropy coded.

Steps are float32, (1,) or (channels,), positive; axis 1 counts
channels, and a tensor of rank 1 is one channel. :mod:`actcodec.golden.lorenzo` predicts along a given number of axes, or along
the number that makes the fewest bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from actcodec.golden.floating import steps
from actcodec.golden.floating.steps import Line
from actcodec.golden.lorenzo import MAX_MAGNITUDE
from actcodec.golden.predicted_integers import DEFLATE, Coded, decode, encode, sample_pieces
from actcodec.golden.shapes import channels_shape, per_channel


@dataclass(frozen=True, eq=False)
class Predicted:
    """Whole numbers after prediction and coding."""

    dimensions: int  #: axes that predict, 0 to 3
    coded: Coded
    places: Tensor  #: int64 (outliers,): positions in the flattened tensor of values without a whole number


def cells(x: Tensor, step: Tensor, coder: str = DEFLATE) -> Predicted:
    """Return the steps of finite values, at most 2**27 from zero, counted as in codec ``blpa-coded``, without outliers.

    ``coder`` is one of :data:`~actcodec.golden.predicted_integers.CODERS`.
    """
    dimensions, coded = encode(x, partial(whole_cells, step=step), None, coder)
    return Predicted(dimensions, coded, torch.zeros(0, dtype=torch.int64, device=x.device))


def multiples(x: Tensor, step: Tensor, dimensions: int | None = None, coder: str = DEFLATE) -> Predicted:
    """Return the nearest multiples of steps; values more than 2**27 steps from zero are outliers.

    ``coder`` is one of :data:`~actcodec.golden.predicted_integers.CODERS`; only ``deflate`` needs ``dimensions``.
    """
    dimensions, coded = encode(x, partial(whole_multiples, step=step), dimensions, coder)
    return Predicted(dimensions, coded, places_beyond(x, step))


def middles(
    predicted: Predicted,
    step: Tensor,
    shape: Sequence[int],
    dtype: torch.dtype,
    *,
    rectified: bool = False,
    line: Line | None = None,
) -> Tensor:
    """Return the middles of the steps of :func:`cells`; the options are as for :func:`.steps.values`."""
    rebuilt = torch.empty(tuple(shape), dtype=dtype, device=step.device)
    _, channels, length = channels_shape(tuple(shape))
    for samples, numbers in decode(predicted.coded, tuple(shape), predicted.dimensions):
        values = per_channel(numbers.to(torch.float32)).add_(0.5).mul_(step[:, None])
        box = (samples if rebuilt.ndim > 1 else slice(0, 1), slice(0, channels), slice(0, length))
        rebuilt[samples] = steps.finished(values, box, dtype, rectified=rectified, line=line).view(numbers.shape)
    return rebuilt


def products(predicted: Predicted, step: Tensor, shape: Sequence[int], dtype: torch.dtype) -> Tensor:
    """Return the results of :func:`multiples` times their steps, in float64, rounded to ``dtype``; outliers are zero."""
    rebuilt = torch.empty(tuple(shape), dtype=dtype, device=step.device)
    limit = torch.finfo(dtype)
    for samples, numbers in decode(predicted.coded, tuple(shape), predicted.dimensions):
        exact = per_channel(numbers) * step.to(torch.float64)[:, None]
        rebuilt[samples] = exact.clamp_(limit.min, limit.max).view(numbers.shape)
    return rebuilt


def whole_cells(part: Tensor, step: Tensor) -> Tensor:
    """Return the step of each value of a part of a tensor that starts with its first channel, int32."""
    values = per_channel(part.to(torch.float32))
    return steps.cells(values, step[: values.shape[1], None]).to(torch.int32).view(part.shape)


def whole_multiples(part: Tensor, step: Tensor) -> Tensor:
    """Return the values of such a part in steps, rounded to nearest even, int32; zero for outliers."""
    exact = _exact(part, step)
    return exact.masked_fill_(exact.abs() > MAX_MAGNITUDE, 0).to(torch.int32).view(part.shape)


def _exact(part: Tensor, step: Tensor) -> Tensor:
    """Return the values in steps, rounded to whole numbers, float64 (n, channels, m)."""
    values = per_channel(part).to(torch.float64)
    return values.div_(step[: values.shape[1], None].to(torch.float64)).round_()


def places_beyond(x: Tensor, step: Tensor) -> Tensor:
    """Return the positions in the flattened tensor of values with too many steps, int64 (n,)."""
    found, size = [], x[0].numel()
    for samples in sample_pieces(tuple(x.shape), x.device):
        beyond = _exact(x[samples], step).abs_() > MAX_MAGNITUDE
        found.append(beyond.flatten().nonzero().flatten() + samples.start * size)
    return torch.cat(found)
