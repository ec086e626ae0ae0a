"""Sets of parameters for several blocks: the differences from the given configuration."""

from __future__ import annotations

from typing import Any

from cdu_spec.config import CONFIGS
from cdu_spec.dct import IEEE1180
from cdu_spec.modes import Coder

#: A unit with every mode.
EVERY: dict[str, Any] = {"modes": CONFIGS["universal"].modes}
#: A unit with both coders of jpeg-act.
CODERS: dict[str, Any] = {"coders": tuple(coder.label for coder in Coder)}
#: A unit with mode mx beside one that lanes code and one that nothing codes.
WITH_MX: dict[str, Any] = {"modes": ("sfpr", "bypass", "mx")}
#: A unit for a short clock period.
PIPELINED: dict[str, Any] = {"dct_stages": 1, "multiplier_stages": 1, "register_slices": 1}
#: Multipliers and reciprocals of all bits that a float32 has.
LONG_SCALES: dict[str, Any] = {"scale_bits": 24, "reciprocal_bits": 24}
#: Words of 1, 2, 4 and 8 rows; the same widths for a unit with every mode.
PORT_WIDTHS: list[dict[str, Any]] = [{"cdus": cdus} for cdus in (1, 2, 4, 8)]
RANGED_WIDTHS: list[dict[str, Any]] = [{**width, **EVERY} for width in PORT_WIDTHS]
#: Both ends of the value side.
VALUE_SIDE: list[dict[str, Any]] = [
    {},
    {"cdus": 2, "value_format": "fp16", **EVERY},
    {"cdus": 8, "value_format": "bf16", "modes": ("sfpr", "brc"), **LONG_SCALES, "multiplier_stages": 1, "register_slices": 1},
]
VALUE_SIDE_FULL: list[dict[str, Any]] = [
    {"cdus": 2, "value_format": "fp16", "scale_bits": 24, **EVERY},
    {"cdus": 8, "value_format": "bf16"},
    {"cdus": 8, "value_format": "bf16", "modes": ("sfpr", "brc"), "multiplier_stages": 1, "register_slices": 1},
    {"cdus": 2, "modes": ("sfpr", "brc"), "multiplier_stages": 1, "register_slices": 1},
    *({"cdus": 4, **EVERY}, {"cdus": 2, "modes": ("sfpr", "brc")}, {"multiplier_stages": 1, "register_slices": 1}),
]
#: Compressor and decompressor.
HALVES: list[dict[str, Any]] = [{}, {"value_format": "bf16", "cdus": 3, "scale_bits": 24, **EVERY, **PIPELINED}]
HALVES_FULL: list[dict[str, Any]] = [{"value_format": "bf16", "cdus": 3, **EVERY}, PIPELINED]
#: Transforms with different arithmetic.
PRECISE: dict[str, Any] = IEEE1180._asdict()
TRANSFORMS: list[dict[str, Any]] = [{}, {"sample_bits": 9, "dct_stages": 1, **PRECISE}]
PRECISIONS: list[dict[str, Any]] = [
    {"sample_bits": 9, **PRECISE},
    {"dct_stages": 1},
    {"const_bits": 13, "pass1_bits": 2},
    PRECISE,
    {"const_bits": 11, "pass1_bits": 4},
    {"const_bits": 13, "pass1_bits": 2, "dct_stages": 1},
    {**PRECISE, "dct_stages": 1},
]
ROUNDINGS: list[dict[str, Any]] = [{"rounding": name} for name in ("half_away", "trunc")]
#: Numbers of CDUs; slices of every width that they have, and of a narrow packed port.
ARRAYS: list[dict[str, Any]] = [{"cdus": cdus} for cdus in (1, 2, 3, 4, 8)]
SLICES: list[dict[str, Any]] = [*ARRAYS, {"cdus": 8, "packed_port_bits": 128}]
#: Ports that are wider and narrower than the lanes together.
VALUE_PORTS: list[dict[str, Any]] = [{"cdus": 3, "value_port_bits": 2048}, {"cdus": 4, "value_port_bits": 256}]
PACKED_PORTS: list[dict[str, Any]] = [
    {"cdus": cdus, "packed_port_bits": bits} for cdus, bits in ((1, 1024), (4, 128), (4, 1024), (8, 128), (8, 512))
]
