"""Scales and offsets of the affine modes: placement of a channel's values in 16 bits by an encoder.

A decoder does not need these rules. All functions take float tensors and return float64 multipliers (channels,) before
rounding, except :func:`blpa_scales`, whose multipliers are rounded because its offsets depend on the result.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from cdu_spec.affine import BASE_BITS, CODE_BITS, AffineSettings
from cdu_spec.geometry import BLOCK_SIDE
from cdu_spec.matrix_view import MatrixView
from cdu_spec.sfpr import SCALE_EXPONENT_LIMIT
from cdu_tools.errors import UserError
from torch import Tensor

from actcodec.golden.block_statistics import residual_maxima

#: Function ``maxima(x, view, k)`` like :func:`~actcodec.golden.block_statistics.residual_maxima`.
ResidualMaxima = Callable[[Tensor, MatrixView, Tensor], Tensor]

#: Greatest integer of SFPR in the affine modes.
MOST = (1 << (BASE_BITS - 1)) - 1
_MOST_SCALE = 2.0**SCALE_EXPONENT_LIMIT
#: Half the width of BLPA's range, in standard deviations.
BLPA_REACH = 3
#: Number of corrections of the scales of channels that share blocks.
_CORRECTIONS = 4
#: Factor by which rounding may increase a residual that is exactly as large as allowed.
_TOLERANCE = 1 + 2.0**-10


def full_scales(largest: Tensor) -> Tensor:
    """Return multipliers ``32767 / max|x|`` from the largest magnitudes, no -0.0; channels of zeros get the greatest one.

    Division has no code for a residual of zero and decodes it to half a step, which is tiny with the greatest multiplier.
    """
    return (MOST / largest).clamp_max(_MOST_SCALE)


def signed_scales(edges: tuple[Tensor, Tensor], settings: AffineSettings) -> Tensor:
    """Return the largest multipliers for which autoquant's codes, ``-2**(bits-1)`` to ``2**(bits-1) - 1`` steps, suffice.

    One bit has no code for positive values; its scale follows from the largest magnitude. ``edges`` are the least and the
    greatest value of each channel, float64.
    """
    above, below = _reach(edges)
    half = 1 << (settings.bits - 1)
    if half == 1:
        return full_scales(torch.maximum(above, below))
    up, down = (half - 1) << settings.step_log2, min(half << settings.step_log2, MOST)
    limits = torch.minimum(up / above, down / below)
    return torch.where(limits.isfinite(), limits, _MOST_SCALE)


def _reach(edges: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
    """Return the extent of each channel above and below zero, float64 (channels,), 0.0 where there is none."""
    least, greatest = edges
    return greatest.clamp_min(0).abs(), least.clamp_max(0).abs()  # no negative zeros, which divide to minus infinity


def bound_scales(edges: tuple[Tensor, Tensor], bound: Tensor, most_bits: int) -> tuple[Tensor, AffineSettings]:
    """Return multipliers and the fewest bits for a largest error per channel (AC-GC, "bits from the error bound").

    A step is twice the bound. The bits are AC-GC's ``-log2(bound) - log2(1 / max|x|)``, sign included, with one code kept back
    for the positive end, rounded up to 1, 2, 4 or 8. If ``most_bits`` are too few, the step is as small as they allow.
    """
    above, below = _reach(edges)
    steps = torch.maximum(above / (2 * bound) + 1, below / (2 * bound))
    allowed = [bits for bits in CODE_BITS if bits <= most_bits]
    bits = next((bits for bits in allowed if bool((steps <= 1 << (bits - 1)).all())), most_bits)
    settings = AffineSettings(bits, BASE_BITS - bits)
    return torch.minimum((1 << settings.step_log2) / (2 * bound), signed_scales(edges, settings)), settings


def division_scales(
    x: Tensor,
    view: MatrixView,
    largest: Tensor,
    settings: AffineSettings,
    S: float,  # noqa: N803
    residuals: ResidualMaxima = residual_maxima,
) -> Tensor:
    """Return multipliers of division with the channel's range: residuals of at most S times half the codes' range.

    Blocks with rows of several channels have one mean, so that a channel's residuals depend on the scales of other channels.
    There, a few corrections approach the result, and remaining excesses saturate. ``residuals`` is a function like
    :func:`~actcodec.golden.block_statistics.residual_maxima`.
    """
    limit = S * (settings.levels << settings.step_log2 >> 1)
    k = full_scales(largest)
    for _ in range(_CORRECTIONS if view.channel_rows % BLOCK_SIDE else 1):
        excess = (residuals(x, view, k.to(torch.float32)).to(torch.float64) / limit).clamp_min_(1.0)
        k = k / excess
        if bool((excess <= _TOLERANCE).all()):
            break
    return k


@dataclass(frozen=True, eq=False)
class ChannelRanges:
    """Bounds of each channel from a first pass, float64 (channels,)."""

    least: Tensor  #: no value is below it
    greatest: Tensor  #: no value is above it
    residual: Tensor  #: no value is further from the mean of its block


def channel_ranges(statistics: Tensor, view: MatrixView, k: Tensor) -> ChannelRanges:
    """Reduce the statistics of all blocks of a job to bounds of channels.

    A block with rows of several channels counts for each of them, so that bounds may be wide there. Raises UserError for a
    channel with a value at the end of SFPR's range, because values beyond it are unknown.

    Parameters
    ----------
    statistics
        Mean, least and greatest integer of each block, int32 (view.blocks, 3): :func:`actcodec.golden.division.statistics`.
    view
        View of the job.
    k
        Multipliers of the first pass, float32 (channels,).
    """
    mean, least, greatest = statistics.view(-1, view.row_beats, statistics.shape[1]).unbind(2)
    beyond = torch.maximum(greatest - mean, mean - least)

    def largest(of_blocks: Tensor) -> Tensor:
        rows = of_blocks.amax(1).repeat_interleave(BLOCK_SIDE)[: view.rows]
        return rows.view(-1, view.channels, view.channel_rows).amax((0, 2)).to(torch.float64)

    below, above = -largest(-least), largest(greatest)
    saturated = (below <= -MOST - 1) | (above >= MOST)
    if bool(saturated.any()):
        channel = int(saturated.nonzero()[0])
        raise UserError(f"channel {channel} reaches the end of 16 bits in the first pass: repeat it with a smaller multiplier")
    # Integers and means each have an error of up to a half.
    scale = k.to(torch.float64)
    return ChannelRanges((below - 0.5) / scale, (above + 0.5) / scale, (largest(beyond) + 1) / scale)


def ranged_scales(ranges: ChannelRanges, settings: AffineSettings, S: float) -> Tensor:  # noqa: N803
    """Return multipliers as :func:`division_scales` does, but from the bounds that a first pass through the unit found."""
    limit = S * (settings.levels << settings.step_log2 >> 1)
    return torch.minimum(full_scales(torch.maximum(ranges.greatest, -ranges.least)), limit / ranges.residual)


def blpa_scales(
    gamma: Tensor, beta: Tensor, settings: AffineSettings, scale_bits: int, rounded: Callable[[Tensor], Tensor]
) -> tuple[Tensor, Tensor]:
    """Return multipliers (float32) and offsets (int16) of BLPA's range ``beta - 3 gamma`` to ``beta + 3 gamma``.

    Takes float64 (channels,). A gamma whose offset would exceed 16 bits is raised. The offset follows from the multiplier that
    ``rounded`` returns, of ``scale_bits``. The greatest step, 2**15, has the offsets -2**15 and 0. A channel of zeros, whose
    beta and gamma are 0, has an offset of minus half a step; zero then lies in a step whose middle is decoded as 0.0.
    """
    step, whole = 1 << settings.step_log2, 1 << (settings.bits + settings.step_log2)
    most = MOST // step
    reach = max(most, 1)
    least = beta.abs() * whole / (2 * BLPA_REACH * reach * step) * (1 + 2.0**-scale_bits)
    width = 2 * BLPA_REACH * torch.maximum(gamma, least)
    exact = whole / width  # infinite, then limited, for channels of zeros
    k = rounded(exact)
    steps = (beta * k.to(torch.float64) / step).floor().clamp(-reach, most)
    zeros = (gamma == 0) & (beta == 0)
    return k, torch.where(zeros, -(step >> 1), steps * step).to(torch.int16)
