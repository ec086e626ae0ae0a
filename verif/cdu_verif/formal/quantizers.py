"""Proofs of quantisers against their definitions, for all coefficients, shifts or divisors, and stalls."""

from __future__ import annotations

from cdu.quantizers.div_quantizer import DIVISOR_BITS, RECIPROCAL_SHIFT, DivQuantizer, InverseDivQuantizer, reciprocal
from cdu_spec.config import CduConfig
from cdu_spec.geometry import BLOCK_SIDE, LANES, SHIFT_BITS, VALUE_BITS
from cdu_spec.reconstruction import POINT_BITS
from cdu_spec.rounding import Rounding
from cdu_spec.sfpr import VALUE_MAX, VALUE_MIN

from cdu_verif.formal import promises
from cdu_verif.formal.binding import concat, instance
from cdu_verif.formal.device import Device
from cdu_verif.formal.stream_rules import with_assumptions


def quantizer_harness(config: CduConfig, device: Device, inverse: bool) -> str:
    """Return a harness that compares every lane of every transfer with the reference, with the shift of its column.

    The references are ``q = sat8(round(c / 2**shift))``, by division, and ``c = sat12(q * 2**shift)``, in units with GMC with
    the reconstruction point of the column. Shifts, bank and point are free; an entry takes effect in the cycle in which its
    column enters.
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


#: Bits of the reciprocal of any divisor, and of the number of places by which a divisor is shifted.
_RECIPROCAL_BITS = reciprocal(1 << (DIVISOR_BITS - 1)).bit_length()
_PLACES_BITS = (DIVISOR_BITS - 1).bit_length()


def division_probes(config: CduConfig) -> dict[str, int]:
    """Return the registers of ``div_quantizer`` that :func:`division_harness` observes, with their bits."""
    return _probes(DivQuantizer.latency, _divided(config))


def division_harness(config: CduConfig, device: Device) -> str:
    """Return a harness that compares every lane of every transfer with the quotient by the divisor of its place.

    Divisors are free, except for 0; an entry takes effect in the cycle in which its column enters.
    """
    own = {
        "ROUND": int(config.rounding_mode is Rounding.HALF_AWAY),
        "RECIPROCAL_BITS": _RECIPROCAL_BITS,
        "RECIPROCAL_SHIFT": RECIPROCAL_SHIFT,
    }
    return _by_lane(config, device, "div_quantizer_rules", own, _divided(config), promises.divisors(device, config))


def multiplication_probes(config: CduConfig) -> dict[str, int]:
    """Return the registers of ``inverse_div_quantizer`` that :func:`multiplication_harness` observes, with their bits."""
    return _probes(InverseDivQuantizer.latency, _multiplied(config))


def multiplication_harness(config: CduConfig, device: Device) -> str:
    """Return a harness that compares every lane of every transfer with the product by the divisor of its place."""
    return _by_lane(config, device, "inverse_div_quantizer_rules", {}, _multiplied(config))


def _divided(config: CduConfig) -> dict[str, int]:
    """Return the registers of each lane of ``div_quantizer``, with their bits."""
    bits = config.coefficient_bits
    first = {"negative1_": 1, "places1_": _PLACES_BITS, "dividend": bits, "reciprocal": _RECIPROCAL_BITS}
    return {**first, "negative2_": 1, "places2_": _PLACES_BITS, "product": bits + _RECIPROCAL_BITS}


def _multiplied(config: CduConfig) -> dict[str, int]:
    """Return the registers of each lane of ``inverse_div_quantizer``, with their bits."""
    return {"divisor": DIVISOR_BITS, "product": config.coefficient_bits + DIVISOR_BITS}


def _probes(latency: int, registers: dict[str, int]) -> dict[str, int]:
    lanes = {f"{register}{lane}": bits for register, bits in registers.items() for lane in range(LANES)}
    return {"column": (BLOCK_SIDE - 1).bit_length(), "valid": latency, **lanes}


def _by_lane(
    config: CduConfig, device: Device, module: str, own: dict[str, int], registers: dict[str, int], promised: str = ""
) -> str:
    sizes = {"LANES": LANES, "COLUMNS": BLOCK_SIDE, "C_BITS": config.coefficient_bits, "DIVISOR_BITS": DIVISOR_BITS}
    ports = {register.rstrip("_"): concat([f"inner_{register}{lane}" for lane in range(LANES)]) for register in registers}
    return with_assumptions(device, promised + instance(module, sizes | own, ports))
