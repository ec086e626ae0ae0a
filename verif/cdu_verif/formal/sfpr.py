"""Proofs of SFPR and its inverse against their definitions: the exact product as one wide integer."""

from __future__ import annotations

from cdu.values.sfpr import FP32_BITS, FP32_EXPONENT_BITS
from cdu_spec import latencies
from cdu_spec.config import CduConfig
from cdu_spec.geometry import LANES, VALUE_BITS
from cdu_spec.sfpr import SCALE_EXPONENT_LIMIT, VALUE_MAX, VALUE_MIN

from cdu_verif.formal.binding import concat, fields, instance
from cdu_verif.formal.device import BoundDevice
from cdu_verif.formal.stream_rules import with_assumptions


def reference_parameters(config: CduConfig) -> dict[str, int]:
    """Return parameters of ``harness/sfpr_reference.sv``: bit patterns ``x`` (value format) and ``k`` (float32) to ``q``."""
    return {
        "EXPONENT_BITS": config.dtype.exponent_bits,
        "FRACTION_BITS": config.dtype.fraction_bits,
        "SCALE_BITS": config.scale_bits,
        "VALUE_MIN": VALUE_MIN,
        "VALUE_MAX": VALUE_MAX,
        "VALUE_BITS": VALUE_BITS,
    }


def arithmetic_harness(config: CduConfig, device: BoundDevice, stalls: bool) -> str:
    """Return a harness that compares every lane of every transfer with the reference for its input.

    Without ``stalls`` the output is always ready, so that results come a fixed time after the input.
    """
    parameters = reference_parameters(config) | {
        "LANES": LANES,
        "LATENCY": latencies.sfpr(config),
        "STALLS": int(stalls),
        "SCALE_EXPONENT_LIMIT": SCALE_EXPONENT_LIMIT,
    }
    ports = {**fields(device, "i__payload", "values", "scale", "binary", "absent"), **fields(device, "o__payload", "values")}
    return with_assumptions(device, instance("sfpr_arithmetic", parameters, ports), resets=stalls)


def inverse_arithmetic_harness(config: CduConfig, device: BoundDevice) -> str:
    """Return a harness that compares every lane of the inverse with the exact product of integers and reciprocals."""
    parameters = {
        "LANES": LANES,
        "VALUE_BITS": VALUE_BITS,
        "RECIPROCAL_BITS": config.used_reciprocal_bits,
        "SCALE_EXPONENT_LIMIT": SCALE_EXPONENT_LIMIT,
    }
    ports = {
        **fields(device, "i__payload", "values", "scale"),
        "o_values": "o__payload",
        **{f"inner_{name}": concat([f"inner_lane{lane}_{name}" for lane in range(LANES)]) for name in _lane_probes(config)},
    }
    return with_assumptions(device, instance("inverse_sfpr_arithmetic", parameters, ports))


def inverse_probes(config: CduConfig) -> dict[str, int]:
    """Return the registers of the inverse that the harness observes, with their bits."""
    lanes = {f"lane{lane}_{name}": bits for name, bits in _lane_probes(config).items() for lane in range(LANES)}
    return {"valid": 3, "scale1": FP32_BITS, "exponent2": FP32_EXPONENT_BITS, **lanes}


def _lane_probes(config: CduConfig) -> dict[str, int]:
    stages = {f"{name}{stage}": bits for name, bits in (("zeros", 3), ("sign", 1), ("zero", 1)) for stage in (1, 2)}
    return {"normalized1": VALUE_BITS, "product": VALUE_BITS + config.used_reciprocal_bits, **stages}
