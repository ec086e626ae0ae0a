"""Affine quantiser and dequantiser against their definitions, stage by stage, for all inputs and any stalls.

A reference computes what every register of a lane must hold; that it does is proven for one transfer of the pipeline after the
other, so that both sides of a multiplication have the same operands.
"""

from __future__ import annotations

from collections.abc import Iterable

from cdu_spec.affine import BASE_BITS, DECODED_BITS, FRACTION_BITS, MANTISSA_BITS, MAX_EXPONENT, RECIPROCAL_SHIFT
from cdu_spec.geometry import BLOCK_SIDE, LANES, VALUE_BITS
from cdu_spec.modes import Mode
from cdu_spec.randomness import ROTATIONS, ROUND_CONSTANTS, SBOX, SECOND_ROTATION, STATE_WORDS, WORD_BITS
from cdu_spec.register_types import COUNT_BITS

from cdu_verif.formal.binding import concat, fields, instance, mask, packed
from cdu_verif.formal.device import BoundDevice
from cdu_verif.formal.stream_rules import with_assumptions

_STAGES = (1, 2, 3)  # of the quantiser before its output

#: Signals of a quantiser that proofs observe.
QUANTIZER_PROBES = {
    "valid": 4,
    "under_way": 4,
    "number": 3,
    "inverse1": 17,
    "shift1": 5,
    "shift2": 5,
    **{f"{name}{stage}": 1 for name in ("signed", "random", "nearest") for stage in _STAGES},
    **{f"bits{stage}": 2 for stage in _STAGES},
    **{f"state{stage}": STATE_WORDS * WORD_BITS for stage in _STAGES},
    **{f"distance{lane}_1": BASE_BITS for lane in range(LANES)},
    **{f"product{lane}": 32 for lane in range(LANES)},
    **{f"quotient{lane}": 25 for lane in range(LANES)},
}

#: Signals of a dequantiser that proofs observe.
DEQUANTIZER_PROBES = {
    "valid": 2,
    "low1": DECODED_BITS,
    "exponent1": 4,
    "mantissa": MANTISSA_BITS,
    **{f"code{lane}": VALUE_BITS for lane in range(LANES)},
    **{f"product{lane}": 16 for lane in range(LANES)},
}

_RANGE = ("range.low", "range.mantissa", "range.exponent")
_QUANTIZER = ("bits_log2", "step_log2", "block_range")


def quantizer_harness(device: BoundDevice, modes: tuple[Mode, ...], lanes: tuple[int, ...]) -> str:
    """``code = min(B, (((t * inv) >> shift) + rho) >> 16)``, ``t = clamp(x - Z, 0, 65535)``, in some ``lanes``; never above B.

    In mode autoquantz the code is given less half of their number, in two's complement. Values of other modes pass.
    """
    parameters = _parameters(modes, lanes) | {
        "RECIPROCAL_SHIFT": RECIPROCAL_SHIFT,
        "FRACTION_BITS": FRACTION_BITS,
        "AUTOQUANTZ": Mode.AUTOQUANTZ,
        "WORD_BITS": WORD_BITS,
        "ROUNDS": len(ROUND_CONSTANTS),
        "CONSTANTS": packed(ROUND_CONSTANTS, 8),
        "SBOX": packed(SBOX, 4),
        "ROTATIONS": packed(ROTATIONS, 8),
        "SECOND_ROTATION": SECOND_ROTATION,
        "NUMBER_BITS": COUNT_BITS - (BLOCK_SIDE - 1).bit_length(),
    }
    settings = [f"tag.how.affine.{name}" for name in (*_QUANTIZER, "stochastic", "statistics")]
    ports = {
        **fields(device, "i__payload", "values", "ends", "tag.mode", *settings, *_RANGE, "seed", "number"),
        **fields(device, "o__payload", "values"),
        **{f"inner_{name}": _probes(name, _STAGES) for name in ("signed", "random", "nearest", "bits", "state")},
        "inner_shift": _probes("shift", (1, 2)),
        "inner_distance": concat([f"inner_distance{lane}_1" for lane in range(LANES)]),
        **{f"inner_{name}": _probes(name, range(LANES)) for name in ("product", "quotient")},
    }
    return with_assumptions(device, instance("affine_quantizer_rules", parameters, ports))


def dequantizer_harness(device: BoundDevice, modes: tuple[Mode, ...], lanes: tuple[int, ...]) -> str:
    """``y = Z + code * D`` in integers of 40 bits is what leaves in 17, in some ``lanes``, and not the least number of these.

    Of ranges that are found ``Z + B * D`` is at most 65535, which is proven of the range finder; codes are at most B.
    """
    settings = [f"quantizer.{name}" for name in _QUANTIZER]
    offset = {} if Mode.BLPA in modes else {"i_offset": f"{BASE_BITS}'d0"}
    ports = {
        **fields(device, "i__payload", "values", "mode", *settings, *_RANGE, *(() if offset else ("offset",))),
        **offset,
        **fields(device, "o__payload", "values"),
        **{f"inner_{name}": _probes(name, range(LANES)) for name in ("code", "product")},
    }
    parameters = _parameters(modes, lanes) | {"DECODED_BITS": DECODED_BITS}
    return with_assumptions(device, instance("affine_dequantizer_rules", parameters, ports))


def _parameters(modes: tuple[Mode, ...], lanes: tuple[int, ...]) -> dict[str, int]:
    return {
        "LANES": LANES,
        "CHECKED": mask(lanes),
        "BASE_BITS": BASE_BITS,
        "VALUE_BITS": VALUE_BITS,
        "MANTISSA_BITS": MANTISSA_BITS,
        "MAX_EXPONENT": MAX_EXPONENT,
        "MODES": mask(modes),
        "AFFINE_MODES": mask([mode for mode in modes if mode.is_affine]),
        "DIVISION": Mode.DIVISION,
        "ACTNN": Mode.ACTNN,
        "BLPA": Mode.BLPA,
    }


def _probes(name: str, numbers: Iterable[int]) -> str:
    """An array of the probes of several stages or lanes."""
    return concat([f"inner_{name}{number}" for number in numbers])
