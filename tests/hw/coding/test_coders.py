"""Both coders of a lane in Amaranth's simulator: jobs of every mode one after the other."""

import pytest
from cdu_spec.config import CONFIGS, CduConfig
from cdu_verif.benches.in_amaranth import assert_passes

BLOCKS = ("lane_encoder", "lane_decoder")


@pytest.mark.parametrize("block", BLOCKS)
def test_cases(block):
    assert_passes(block, CduConfig(), steady=False)


@pytest.mark.campaign  # `cdu verify` plays the same cases on the Verilog
@pytest.mark.parametrize("block", BLOCKS)
def test_cases_with_every_mode(block):
    assert_passes(block, CONFIGS["universal"].override(cdus=4))
