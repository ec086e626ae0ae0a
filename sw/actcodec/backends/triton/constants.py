"""Numbers of the specification, as constants for kernels."""

from __future__ import annotations

import triton.language as tl
from cdu_spec import affine, geometry, gmc, modes, sfpr

from actcodec.golden import affine as golden_affine
from actcodec.golden import shift_quantizer

#: Bits of an infinite float32; those of larger magnitudes are NaN's.
INFINITY = tl.constexpr(0x7F800000)
LANES = tl.constexpr(geometry.LANES)
SIDE = tl.constexpr(geometry.BLOCK_SIDE)
BLOCK_VALUES = tl.constexpr(geometry.BLOCK_VALUES)
MEAN_SHIFT = tl.constexpr(geometry.BLOCK_VALUES.bit_length() - 1)
TILE_BLOCKS = tl.constexpr(geometry.TILE_BLOCKS)
VALUE_MIN, VALUE_MAX = tl.constexpr(sfpr.VALUE_MIN), tl.constexpr(sfpr.VALUE_MAX)
COEFFICIENT_MIN = tl.constexpr(shift_quantizer.COEFFICIENT_MIN)
COEFFICIENT_MAX = tl.constexpr(shift_quantizer.COEFFICIENT_MAX)
MASK_BYTES = tl.constexpr(modes.MASK_BYTES)
LOW_BYTES = tl.constexpr(modes.LOW_BYTES)
BASE_MIN = tl.constexpr(-(1 << affine.BASE_BITS - 1))
BASE_MAX = tl.constexpr((1 << affine.BASE_BITS - 1) - 1)
MAX_SPREAD = tl.constexpr(golden_affine.MAX_SPREAD)
GROUP_VALUES = tl.constexpr(affine.GROUP_VALUES)
MANTISSA_BITS = tl.constexpr(affine.MANTISSA_BITS)
NEAREST = tl.constexpr(golden_affine.NEAREST)
FRACTION_BITS = tl.constexpr(affine.FRACTION_BITS)
RECIPROCAL_SHIFT = tl.constexpr(affine.RECIPROCAL_SHIFT)
RECIPROCAL_ONE = tl.constexpr(1 << affine.RECIPROCAL_SHIFT)

# GMC
GMC_GROUP = tl.constexpr(gmc.GROUP_VALUES)
GMC_RAW_CLASS = tl.constexpr(gmc.RAW_CLASS)
GMC_LAST_MASK_CLASS = tl.constexpr(gmc.LAST_MASK_CLASS)
GMC_A_BOTH_ZERO, GMC_A_ZERO = tl.constexpr(gmc.A_BOTH_ZERO), tl.constexpr(gmc.A_ZERO)
GMC_A_FIRST, GMC_A_AFTER_ZERO = tl.constexpr(gmc.A_FIRST), tl.constexpr(gmc.A_AFTER_ZERO)
GMC_B_FIRST, GMC_B_BESIDE_ZERO = tl.constexpr(gmc.B_FIRST), tl.constexpr(gmc.B_BESIDE_ZERO)
GMC_LAST_CONTEXT = tl.constexpr(gmc.LAST_CLASS_CONTEXT)
GMC_SHORT_BYTES, GMC_LONG_HEAD = tl.constexpr(gmc.SHORT_BYTES), tl.constexpr(gmc.LONG_HEAD)
GMC_CATEGORY_BITS, GMC_MAX_CATEGORY = tl.constexpr(gmc.CATEGORY_BITS), tl.constexpr(gmc.MAX_CATEGORY)
GMC_CATEGORY_MASK = tl.constexpr((1 << gmc.CATEGORY_BITS) - 1)
