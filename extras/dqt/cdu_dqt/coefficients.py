"""DCT coefficients of activations, in the form that a quantiser of jpeg-act or jpeg-base gets."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from actcodec.golden import blocks
from actcodec.golden.dct import dct
from actcodec.golden.sfpr import scales, sfpr
from actcodec.golden.shift_quantizer import COEFFICIENT_MAX, COEFFICIENT_MIN
from cdu_spec.config import CduConfig
from cdu_spec.geometry import BLOCK_VALUES, COEFFICIENT_BITS
from cdu_spec.matrix_view import MatrixView
from cdu_spec.modes import Mode
from torch import Tensor

#: Every value that a coefficient can have, int16 (4096,).
COEFFICIENT_VALUES = torch.arange(COEFFICIENT_MIN, COEFFICIENT_MAX + 1, dtype=torch.int16)


def quantized_matrix(x: Tensor, S: float) -> tuple[Tensor, Tensor]:  # noqa: N803
    """Return SFPR's integers of a tensor (N, C, H, W) as the padded matrix, int8 (8 * strips, 8 * n), and its multipliers.

    The multipliers are float32 (C,). Precision is that of the default unit.
    """
    view = MatrixView.of(x.shape, Mode.JPEG_ACT)
    channels = blocks.by_channel(x.contiguous(), view)
    k, _ = scales(channels, S, CduConfig.scale_bits)
    return blocks.padded(sfpr(channels, k[:, None]).view(x.shape), view), k


def coefficients(tensors: Iterable[Tensor], S: float) -> Tensor:  # noqa: N803
    """Return the coefficients of all blocks of some tensors (N, C, H, W), int16 (blocks, 64), in row order.

    Parameters
    ----------
    tensors
        float32, bfloat16 or float16, each with W >= 8 and N * C * H >= 8.
    S
        Scale of SFPR.
    """
    config = CduConfig()
    found = [dct(blocks.tiles(quantized_matrix(x, S)[0]), config.const_bits, config.pass1_bits) for x in tensors]
    return torch.cat(found).view(-1, BLOCK_VALUES)


def histogram(of: Tensor) -> Tensor:
    """Count the values of each coefficient: float64 (64, 4096), whole numbers, from int16 (blocks, 64) in -2048..2047.

    Column j counts ``COEFFICIENT_VALUES[j]``.
    """
    span = 1 << COEFFICIENT_BITS
    places = torch.arange(BLOCK_VALUES) * span - COEFFICIENT_MIN
    counts = torch.bincount((of.to(torch.int64) + places).flatten(), minlength=BLOCK_VALUES * span)
    return counts.view(BLOCK_VALUES, span).to(torch.float64)
