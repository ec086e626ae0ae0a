"""Every block, and with block array the unit, can be built for every configuration that is allowed."""

import pytest
from amaranth.hdl import Fragment
from cdu.delivery.blocks import BLOCKS, UNITS
from cdu_spec.config import CduConfig

VARIANTS = {
    "default": {},
    "bf16": {"value_format": "bf16", "scale_bits": 11},
    "fp16_trunc": {"value_format": "fp16", "scale_bits": 24, "rounding": "trunc"},
    "least_precision": {"const_bits": 8, "pass1_bits": 0},
    "most_precision": {"const_bits": 13, "pass1_bits": 4},
    "one_mode": {"modes": ("jpeg-act",)},
    "no_zvc": {"modes": ("sfpr", "brc")},
    "gmc": {"coders": ("gmc",)},
    "both_coders": {"coders": ("zvc", "gmc")},
    "three_cdus": {"cdus": 3, "duplex": "half"},
    "narrow_ports": {"cdus": 2, "value_port_bits": 256, "packed_port_bits": 128},
    "pipelined": {"cdus": 2, "dct_stages": 1, "multiplier_stages": 1, "register_slices": 1},
    "wide_ports": {"value_format": "bf16", "value_port_bits": 1024, "packed_port_bits": 1024},
}


#: Two variants at a time, of which each is about something else.
PAIRS = (
    *(("bf16", "least_precision"), ("fp16_trunc", "most_precision"), ("one_mode", "three_cdus"), ("no_zvc", "narrow_ports")),
    *(("gmc", "pipelined"), ("both_coders", "wide_ports")),
)
COMBINED = {"default": {}} | {f"{one}-{other}": VARIANTS[one] | VARIANTS[other] for one, other in PAIRS}
#: The unit whose ports have clocks of their own is built where ports differ: what is inside is that of a unit with an engine.
OF_PORTS = {name: settings for name, settings in COMBINED.items() if "ports" in name}
#: Whole parts of the unit with an engine, and as large.
IN_ANOTHER = {"array", "compressor", "decompressor"}
#: The unit with an engine has most blocks within it, and is built for all; each block is built alone for every fourth one.
BUILT = [
    pytest.param(block, settings, id=f"{block}-{name}", marks=() if taken else pytest.mark.campaign)
    for number, block in enumerate(name for name in BLOCKS if name not in IN_ANOTHER)
    for place, (name, settings) in enumerate((OF_PORTS if block == "clocked_array" else COMBINED).items())
    for taken in [block in UNITS or (number + place) % 4 == 0]
]


@pytest.mark.parametrize(("block", "settings"), BUILT)
def test_blocks_elaborate(block, settings):
    Fragment.get(BLOCKS[block](CduConfig(**settings)), None).prepare()


def test_every_variant_is_built():
    assert sorted(variant for pair in PAIRS for variant in pair) == sorted(set(VARIANTS) - {"default"})
