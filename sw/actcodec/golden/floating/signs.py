"""Arithmetic of exact signs beside a reconstruction (:mod:`actcodec.codecs.sign_corrections`).

Reconstructions are (N, channels, n), contiguous, of a unit's dtype; ``unit``, the step of each channel, is float32 (channels,).
Operations are float32, one by one in the order written here. Callers give the coder of bits, so that it may be mode brc of any
backend.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from cdu_spec.sfpr import VALUE_MAX
from torch import Tensor

from actcodec.golden.floating.steps import Line
from actcodec.golden.formats import as_dtype
from actcodec.golden.pieces import pieces
from actcodec.golden.shapes import Box, boxes

#: Range of the steps that are distinguished: -1 stands for all steps below, too, and the greatest for all above.
LEAST_STEPS, MOST_STEPS = -1, VALUE_MAX + 1
_PLACES = MOST_STEPS - LEAST_STEPS + 1


@dataclass(frozen=True, eq=False)
class Signs:
    """Description of a tensor's signs relative to a reconstruction."""

    limit: int  #: limit, 0 to 127: a value counts as positive if its reconstruction has more steps
    wrong: Tensor  #: uint8 (ceil(values / 8),): whether that sign is wrong, value i at bit ``i % 8`` of byte ``i // 8``


def compare(decoded: Tensor, unit: Tensor, original: Tensor, pack: Callable[[Tensor], Tensor]) -> Signs:
    """Return the signs with the fewest wrong ones; zero counts as not positive.

    ``original`` is contiguous, of shape and dtype of ``decoded``, which may be overwritten.
    ``pack(values)`` returns the bits of ``values > 0`` of floats (n,) as :attr:`Signs.wrong`.
    """
    for box in _boxes(decoded):
        decoded[box] = _steps(decoded[box].to(torch.float32), unit, box)
    steps, exact = decoded.view(-1), original.view(-1)
    limit = best_limit(_counts(steps, exact))
    for part in pieces(steps.numel(), steps.device):
        steps[part] = (steps[part] > limit) != (exact[part] > 0)
    return Signs(limit, pack(steps))


def correct(
    decoded: Tensor,
    unit: Tensor,
    signs: Signs | None,
    line: Line | None,
    unpack: Callable[[Tensor, Tensor], Tensor],
    *,
    rectified: bool,
) -> None:
    """Correct the signs of a reconstruction and apply a line to its values, in place.

    Values that are not positive become at most zero, and zero if ``rectified``. Results are limited to the dtype's range.
    ``unpack(wrong, decoded)`` returns the bits of the values of ``decoded``, boolean (n,).
    """
    wrong = None if signs is None else unpack(signs.wrong, decoded).view(decoded.shape)
    details = torch.finfo(decoded.dtype)
    for box in _boxes(decoded):
        values = decoded[box].to(torch.float32, copy=True)
        if signs is not None and wrong is not None:
            positive = (_steps(values, unit, box) > signs.limit) != wrong[box]
            least = unit[box[1], None].clamp_min(details.smallest_normal * details.eps)
            others = torch.zeros_like(values) if rectified else values.clamp_max(0)
            values = torch.where(positive, torch.maximum(values, least), others)
        decoded[box] = as_dtype(values if line is None else line(values, box), decoded.dtype)


def best_limit(counts: Tensor) -> int:
    """Return the limit with the fewest errors.

    ``counts``, int64 (2, n), holds how often steps from the least to the greatest occur, first with values that are not
    positive, then with positive ones.
    """
    # Steps above the last limit are positive with every limit.
    others, positives = counts.cumsum(1)[:, 1:-1]
    return int((positives - others).argmin())


def _counts(steps: Tensor, original: Tensor) -> Tensor:
    counts = torch.zeros(2 * _PLACES, dtype=torch.int64, device=steps.device)
    for part in pieces(steps.numel(), steps.device):
        places = (steps[part] - LEAST_STEPS).to(torch.int16).add_(original[part] > 0, alpha=_PLACES)
        counts += torch.bincount(places, minlength=2 * _PLACES)
    return counts.view(2, _PLACES)


def _steps(values: Tensor, unit: Tensor, box: Box) -> Tensor:
    """Return the float32 values of a box in steps, a new tensor."""
    return (values / unit[box[1], None]).round_().clamp_(LEAST_STEPS, MOST_STEPS)


def _boxes(decoded: Tensor) -> list[Box]:
    return list(boxes(tuple(decoded.shape), decoded.device))
