"""Shift quantiser and its inverse against their definitions, for all coefficients, shifts and stalls."""

from __future__ import annotations

from cdu_spec.config import CduConfig
from cdu_spec.geometry import BLOCK_SIDE, LANES, SHIFT_BITS, VALUE_BITS
from cdu_spec.reconstruction import POINT_BITS
from cdu_spec.rounding import Rounding
from cdu_spec.sfpr import VALUE_MAX, VALUE_MIN

from cdu_verif.formal.binding import instance
from cdu_verif.formal.device import Device
from cdu_verif.formal.stream_rules import with_assumptions


def quantizer_harness(config: CduConfig, device: Device, inverse: bool) -> str:
    """Every lane of every transfer equals the reference of the transfer before it, with the shift of its column.

    The references are ``q = sat8(round(c / 2**shift))``, by division, and ``c = sat12(q * 2**shift)``, in units with GMC with
    the reconstruction point of the column. Shifts, bank and point are free, an entry counts in the cycle in which its column
    enters.
    """
    bits = config.coefficient_bits
    x_bits, y_bits = (VALUE_BITS, bits) if inverse else (bits, VALUE_BITS)
    y_min, y_max = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if inverse else (VALUE_MIN, VALUE_MAX)
    parameters = {
        "LANES": LANES,
        "COLUMNS": BLOCK_SIDE,
        "INVERSE": int(inverse),
        "ROUND": int(config.rounding_mode is Rounding.HALF_AWAY),
        "X_BITS": x_bits,
        "SHIFT_BITS": SHIFT_BITS,
        "POINT_BITS": POINT_BITS,
        "Y_BITS": y_bits,
        "Y_MIN": y_min,
        "Y_MAX": y_max,
    }
    fixed = {} if inverse and config.has_gmc else {"point": f"{POINT_BITS}'d0"}
    return with_assumptions(device, instance("shift_quantizer_arithmetic", parameters, fixed))
