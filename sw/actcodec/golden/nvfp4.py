"""NVFP4: E2M1 numbers in blocks of 16, of which each has a scale in E4M3, and the tensor one in float32 (NVIDIA, 2025).

All is float32 arithmetic, operation by operation as it stands here; torchao has the same.
"""

from __future__ import annotations

import torch
from cdu_spec.mx import NVFP4_FORMAT, NVFP4_SCALE
from torch import Tensor

from actcodec.golden.checks import require
from actcodec.golden.formats import quotient
from actcodec.golden.mx import canonical_, element_codes, minifloat, numbers, numbers_of, with_scales, without_scales

_GREATEST = float(numbers(NVFP4_FORMAT)[NVFP4_FORMAT.greatest])
_GREATEST_SCALE = float(numbers(NVFP4_SCALE)[NVFP4_SCALE.greatest])
#: Scales are normal numbers, so that they are never zero.
_LEAST_SCALE = 2.0**NVFP4_SCALE.emin


def tensor_scale(largest: Tensor) -> Tensor:
    """float32 () of the largest magnitude of a tensor, finite float32 (): with it the greatest block has the greatest scale.

    Never so small that its product with the least scale of a block has no reciprocal.
    """
    return quotient(largest, _GREATEST_SCALE * _GREATEST).clamp_min(torch.finfo(torch.float32).tiny / _LEAST_SCALE)


def encode(values: Tensor, scale: Tensor) -> Tensor:
    """Finite float32 (blocks, 16) and the tensor's scale, float32 (), to blocks as bytes, uint8 (blocks, 9)."""
    require("values", values, (torch.float32,), (NVFP4_FORMAT.values,))
    wanted = (quotient(values.abs().amax(1), _GREATEST) / scale).clamp_(_LEAST_SCALE, _GREATEST_SCALE)
    scales = minifloat(NVFP4_SCALE).encode(wanted)
    factors = (1.0 / scale) / minifloat(NVFP4_SCALE).decode(scales)
    return with_scales(scales.to(torch.uint8), element_codes(values * factors[:, None], NVFP4_FORMAT), NVFP4_FORMAT)


def decode(blocks: Tensor, scale: Tensor) -> Tensor:
    """The inverse: uint8 (blocks, 9) to float32 (blocks, 16), the products of scales and of codes rounded."""
    scales, codes = without_scales(blocks, NVFP4_FORMAT)
    factors = scale * numbers_of(scales, NVFP4_SCALE)
    return canonical_(numbers_of(codes, NVFP4_FORMAT) * factors[:, None])
