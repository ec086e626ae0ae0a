"""NVFP4: E2M1 numbers in blocks of 16 with a scale in E4M3 per block and one in float32 per tensor (NVIDIA, 2025).

All arithmetic is float32, operation by operation as written here; torchao computes the same.
"""

from __future__ import annotations

import torch
from cdu_spec.mx import NVFP4_FORMAT, NVFP4_SCALE
from torch import Tensor

from actcodec.golden.checks import require
from actcodec.golden.formats import quotient
from actcodec.golden.mx import canonical_, element_codes, minifloat, numbers, numbers_of, with_scales, without_scales

GREATEST = float(numbers(NVFP4_FORMAT)[NVFP4_FORMAT.greatest])
GREATEST_SCALE = float(numbers(NVFP4_SCALE)[NVFP4_SCALE.greatest])
#: Least scale of a block; scales are normal numbers and therefore never zero.
LEAST_SCALE = 2.0**NVFP4_SCALE.emin
#: Least scale of a tensor: its product with the least scale of a block has a reciprocal.
LEAST_TENSOR_SCALE = torch.finfo(torch.float32).tiny / LEAST_SCALE


def tensor_scale(largest: Tensor) -> Tensor:
    """Return the scale, float32 (), of a tensor from its largest magnitude, finite float32 ().

    The block with the largest magnitude then has the greatest scale.
    """
    return quotient(largest, GREATEST_SCALE * GREATEST).clamp_min(LEAST_TENSOR_SCALE)


def encode(values: Tensor, scale: Tensor) -> Tensor:
    """Encode finite float32 (blocks, 16) with the tensor's scale, float32 (), to blocks as bytes, uint8 (blocks, 9)."""
    require("values", values, (torch.float32,), (NVFP4_FORMAT.values,))
    wanted = (quotient(values.abs().amax(1), GREATEST) / scale).clamp_(LEAST_SCALE, GREATEST_SCALE)
    scales = minifloat(NVFP4_SCALE).encode(wanted)
    factors = (1.0 / scale) / minifloat(NVFP4_SCALE).decode(scales)
    return with_scales(scales.to(torch.uint8), element_codes(values * factors[:, None], NVFP4_FORMAT), NVFP4_FORMAT)


def decode(blocks: Tensor, scale: Tensor) -> Tensor:
    """Decode uint8 (blocks, 9) to float32 (blocks, 16), rounding the products of scales and those of codes."""
    scales, codes = without_scales(blocks, NVFP4_FORMAT)
    factors = scale * numbers_of(scales, NVFP4_SCALE)
    return canonical_(numbers_of(codes, NVFP4_FORMAT) * factors[:, None])
