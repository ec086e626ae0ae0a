"""SFPR (scaled fix-point precision reduction): the limits and defaults of its scale (JPEG-ACT, equation for SFPR)."""

from cdu_spec.geometry import VALUE_BITS

#: S of JPEG-ACT: the published commands use ``2**7 * S = 144``, with which the largest ninth of a channel's range saturates.
PUBLISHED_S = 1.125
#: S of this project's own codecs: no value saturates.
DEFAULT_S = 1.0
#: Least and greatest useful S: beyond them every value is zero, or the largest.
LEAST_S, GREATEST_S = 1e-6, 1e6
#: ``k = SCALE_UNIT * s_c``: one unit of the quantised value per ``1 / SCALE_UNIT`` of the scaled input.
SCALE_UNIT = 1 << (VALUE_BITS - 1)
#: Multiplier and reciprocal lie in ``[2**-SCALE_EXPONENT_LIMIT, 2**SCALE_EXPONENT_LIMIT]``. Both are then normal
#: float32 numbers, and every product of a reciprocal and an 8-bit value is a normal, finite float32 number.
SCALE_EXPONENT_LIMIT = 120
#: Significand widths of the multiplier that the hardware can be built for (hidden bit included).
SCALE_BITS = (24, 11, 8)
#: Significand widths of the reciprocal that the hardware can be built for. With 16 bits or fewer a product with an 8-bit value
#: is a float32 number: nothing is rounded.
RECIPROCAL_BITS = (24, 16, 12)
#: Significand bits of the reciprocals that encoders write in modes without codes; in the affine modes they are float32 numbers.
#: The loss, up to ``2**-12`` of a value, is at most a thirty-second of a step, as a value has up to 128 of them.
SFPR_RECIPROCAL_BITS = 12
#: Smallest and largest quantised value.
VALUE_MIN = -(1 << (VALUE_BITS - 1))
VALUE_MAX = (1 << (VALUE_BITS - 1)) - 1
