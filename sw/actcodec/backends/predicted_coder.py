"""The arithmetic of ``blpa-coded`` and ``cusz`` on all values of a tensor, by torch: whole steps, predicted and entropy coded.

This is the specification of every other way to compute it. Steps are float32, (1,) or (channels,), positive; channels are counted
by the second axis (a tensor of rank 1 is one). Prediction is that of :mod:`actcodec.golden.lorenzo`, along as many axes as are
asked for, or as make the fewest bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import torch
from torch import Tensor

from actcodec.backends.step_quantizer import Line, cells, finished
from actcodec.golden.integer_coder import CodedIntegers, decode, encode
from actcodec.golden.lorenzo import MAX_MAGNITUDE, cheapest_dimensions, differences, sample, sums
from actcodec.golden.shapes import boxes, channel_view, channels_shape


@dataclass(frozen=True, eq=False)
class Predicted:
    """Whole numbers after prediction and coding."""

    dimensions: int  #: axes that predict, 0 to 3
    coded: CodedIntegers
    places: Tensor  #: int64 (outliers,): where values that have no whole number are in the flattened tensor


class PredictedCoder:
    """Tensors as whole numbers of steps, and back."""

    def cells(self, x: Tensor, step: Tensor) -> Predicted:
        """The steps in which finite values lie, at most 2**27 from zero, as codec ``blpa-coded`` counts them. No outliers."""
        numbers = whole_cells(x, step)
        dimensions = self.dimensions(x, step, cells=True)
        return Predicted(dimensions, encode(differences(numbers, dimensions)), _none(x))

    def multiples(self, x: Tensor, step: Tensor, dimensions: int | None = None) -> Predicted:
        """The nearest multiples of steps; outliers are more than 2**27 of them from zero."""
        numbers, beyond = whole_multiples(x, step)
        if dimensions is None:
            dimensions = self.dimensions(x, step, cells=False)
        places = beyond.flatten().nonzero().flatten()
        return Predicted(dimensions, encode(differences(numbers, dimensions)), places)

    def middles(
        self,
        predicted: Predicted,
        step: Tensor,
        shape: Sequence[int],
        dtype: torch.dtype,
        *,
        rectified: bool = False,
        line: Line | None = None,
    ) -> Tensor:
        """The middles of the steps of :meth:`cells`, as :meth:`~actcodec.backends.step_quantizer.StepQuantizer.values`."""
        whole = tuple(shape)
        numbers = _numbers(predicted, whole).view(channels_shape(whole))
        rebuilt = torch.empty(numbers.shape, dtype=dtype, device=numbers.device)
        for box in boxes(whole, numbers.device):
            values = (numbers[box].to(torch.float32) + 0.5).mul_(step[box[1], None])
            rebuilt[box] = finished(values, box, dtype, rectified=rectified, line=line)
        return rebuilt.view(whole)

    def products(self, predicted: Predicted, step: Tensor, shape: Sequence[int], dtype: torch.dtype) -> Tensor:
        """The multiples of steps of :meth:`multiples`, float64 products rounded to ``dtype``; zero for outliers."""
        whole = tuple(shape)
        numbers = _numbers(predicted, whole).view(channels_shape(whole))
        rebuilt = torch.empty(numbers.shape, dtype=dtype, device=numbers.device)
        limit = torch.finfo(dtype)
        for box in boxes(whole, numbers.device):
            exact = numbers[box] * _of_box(step, box[1]).to(torch.float64)
            rebuilt[box] = exact.clamp_(limit.min, limit.max)
        return rebuilt.view(whole)

    def dimensions(self, x: Tensor, step: Tensor, *, cells: bool) -> int:
        """The number of axes that make the fewest bits in the first samples of a tensor, or in a part of them."""
        return cheapest_dimensions(sampled(x, step, cells=cells))


def whole_cells(x: Tensor, step: Tensor) -> Tensor:
    """Numbers of the steps in which values lie, int32."""
    numbers = torch.empty(channels_shape(tuple(x.shape)), dtype=torch.int32, device=x.device)
    for box in boxes(tuple(x.shape), x.device):
        numbers[box] = cells(channel_view(x, box).to(torch.float32), step[box[1], None])
    return numbers.view(x.shape)


def whole_multiples(x: Tensor, step: Tensor) -> tuple[Tensor, Tensor]:
    """Numbers of steps, rounded to nearest even, int32; and where they are too many, boolean: there they are zero."""
    numbers = torch.empty(channels_shape(tuple(x.shape)), dtype=torch.int32, device=x.device)
    beyond = torch.empty(numbers.shape, dtype=torch.bool, device=x.device)
    for box in boxes(tuple(x.shape), x.device):
        exact = (channel_view(x, box).to(torch.float64) / _of_box(step, box[1]).to(torch.float64)).round_()
        beyond[box] = exact.abs() > MAX_MAGNITUDE
        numbers[box] = exact.masked_fill_(beyond[box], 0)
    return numbers.view(x.shape), beyond.view(x.shape)


def sampled(x: Tensor, step: Tensor, *, cells: bool) -> Tensor:
    """Whole numbers of a part of a tensor, by which the axes that predict are chosen."""
    part = sample(x)
    steps = step[: part.shape[1]] if step.numel() > 1 else step.expand(channels_shape(tuple(part.shape))[1])
    return whole_cells(part, steps) if cells else whole_multiples(part, steps)[0]


def _of_box(step: Tensor, channels: slice) -> Tensor:
    """Steps in a shape that goes with (n, channels, m)."""
    return step if step.numel() == 1 else step[channels, None]


def _numbers(predicted: Predicted, shape: tuple[int, ...]) -> Tensor:
    return sums(decode(predicted.coded, prod(shape)).view(shape), predicted.dimensions)


def _none(x: Tensor) -> Tensor:
    return torch.zeros(0, dtype=torch.int64, device=x.device)
