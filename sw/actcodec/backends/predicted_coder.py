"""The arithmetic of ``blpa-coded`` and ``cusz`` on all values of a tensor, by torch: whole steps, predicted and entropy coded.

This is the specification of every other way to compute it. Steps are float32, (1,) or (channels,), positive; channels are
counted by the second axis (a tensor of rank 1 is one). Prediction is that of :mod:`actcodec.golden.lorenzo`, along as many axes
as are asked for, or as make the fewest bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from actcodec.backends.step_quantizer import Line, cells, finished
from actcodec.golden.integer_coder import CodedIntegers
from actcodec.golden.lorenzo import MAX_MAGNITUDE
from actcodec.golden.predicted_integers import decode, encode, sample_pieces
from actcodec.golden.shapes import channels_shape, per_channel


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
        dimensions, coded = encode(x, partial(whole_cells, step=step), None)
        return Predicted(dimensions, coded, torch.zeros(0, dtype=torch.int64, device=x.device))

    def multiples(self, x: Tensor, step: Tensor, dimensions: int | None = None) -> Predicted:
        """The nearest multiples of steps; outliers are more than 2**27 of them from zero."""
        dimensions, coded = encode(x, partial(whole_multiples, step=step), dimensions)
        return Predicted(dimensions, coded, _places_beyond(x, step))

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
        rebuilt = torch.empty(tuple(shape), dtype=dtype, device=step.device)
        _, channels, length = channels_shape(tuple(shape))
        for samples, numbers in decode(predicted.coded, tuple(shape), predicted.dimensions):
            values = per_channel(numbers.to(torch.float32)).add_(0.5).mul_(step[:, None])
            box = (samples if rebuilt.ndim > 1 else slice(0, 1), slice(0, channels), slice(0, length))
            rebuilt[samples] = finished(values, box, dtype, rectified=rectified, line=line).view(numbers.shape)
        return rebuilt

    def products(self, predicted: Predicted, step: Tensor, shape: Sequence[int], dtype: torch.dtype) -> Tensor:
        """The multiples of steps of :meth:`multiples`, float64 products rounded to ``dtype``; zero for outliers."""
        rebuilt = torch.empty(tuple(shape), dtype=dtype, device=step.device)
        limit = torch.finfo(dtype)
        for samples, numbers in decode(predicted.coded, tuple(shape), predicted.dimensions):
            exact = per_channel(numbers) * step.to(torch.float64)[:, None]
            rebuilt[samples] = exact.clamp_(limit.min, limit.max).view(numbers.shape)
        return rebuilt


def whole_cells(part: Tensor, step: Tensor) -> Tensor:
    """Numbers of the steps in which the values of a part of a tensor, with the first of its channels, lie; int32."""
    values = per_channel(part.to(torch.float32))
    return cells(values, step[: values.shape[1], None]).to(torch.int32).view(part.shape)


def whole_multiples(part: Tensor, step: Tensor) -> Tensor:
    """Numbers of steps of such a part, rounded to nearest even, int32; zero where they are too many."""
    exact = _exact(part, step)
    return exact.masked_fill_(exact.abs() > MAX_MAGNITUDE, 0).to(torch.int32).view(part.shape)


def _exact(part: Tensor, step: Tensor) -> Tensor:
    """Whole numbers of steps, float64 (n, channels, m)."""
    values = per_channel(part).to(torch.float64)
    return values.div_(step[: values.shape[1], None].to(torch.float64)).round_()


def _places_beyond(x: Tensor, step: Tensor) -> Tensor:
    """Where the flattened tensor has values of too many steps, int64 (n,)."""
    found, size = [], x[0].numel()
    for samples in sample_pieces(tuple(x.shape), x.device):
        beyond = _exact(x[samples], step).abs_() > MAX_MAGNITUDE
        found.append(beyond.flatten().nonzero().flatten() + samples.start * size)
    return torch.cat(found)
