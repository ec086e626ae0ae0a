"""SFPR against its definition: the exact product as one wide integer, rounded once."""

from __future__ import annotations

from cdu.values.sfpr import latency
from cdu_spec.config import CduConfig
from cdu_spec.geometry import LANES, VALUE_BITS
from cdu_spec.sfpr import SCALE_EXPONENT_LIMIT, VALUE_MAX, VALUE_MIN

from cdu_verif.formal.binding import fields, instance
from cdu_verif.formal.device import Device
from cdu_verif.formal.stream_rules import with_assumptions


def reference_parameters(config: CduConfig) -> dict[str, int]:
    """Parameters of ``harness/sfpr_reference.sv``: bit patterns ``x`` (value format) and ``k`` (float32) to ``q``."""
    return {
        "EXPONENT_BITS": config.dtype.exponent_bits,
        "FRACTION_BITS": config.dtype.fraction_bits,
        "SCALE_BITS": config.scale_bits,
        "VALUE_MIN": VALUE_MIN,
        "VALUE_MAX": VALUE_MAX,
        "VALUE_BITS": VALUE_BITS,
    }


def arithmetic_harness(config: CduConfig, device: Device, stalls: bool) -> str:
    """Every lane of every transfer equals the reference of the input that it belongs to.

    Without ``stalls`` the output is always ready, so that results are due a fixed time after the input.
    """
    parameters = reference_parameters(config) | {
        "LANES": LANES,
        "LATENCY": latency(config),
        "STALLS": int(stalls),
        "SCALE_EXPONENT_LIMIT": SCALE_EXPONENT_LIMIT,
    }
    ports = {**fields(device, "i__payload", "values", "scale", "binary", "absent"), **fields(device, "o__payload", "values")}
    return with_assumptions(device, instance("sfpr_arithmetic", parameters, ports), resets=stalls)
