"""Every block, and with block array the unit, can be built for every configuration that is allowed."""

import pytest
from amaranth.hdl import Fragment
from cdu.delivery.blocks import BLOCKS
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


#: The whole unit is a part of the one with an engine. The one whose ports have clocks of their own is built where ports differ.
TOPS = [block for block in BLOCKS if block != "array"]
OF_PORTS = ("default", "three_cdus", "narrow_ports", "wide_ports")
BUILT = [(block, variant) for block in TOPS for variant in VARIANTS if block != "clocked_array" or variant in OF_PORTS]


@pytest.mark.parametrize(("block", "variant"), BUILT)
def test_blocks_elaborate(block, variant):
    Fragment.get(BLOCKS[block](CduConfig(**VARIANTS[variant])), None).prepare()
