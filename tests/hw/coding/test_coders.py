"""Both coders of a lane in Amaranth's simulator: jobs of every mode one after the other."""

import pytest
from cdu_spec.config import CONFIGS, CduConfig
from cdu_verif.benches.in_amaranth import assert_passes


@pytest.mark.parametrize("config", [CduConfig(), CONFIGS["universal"].override(cdus=4)], ids=["tiny", "universal"])
@pytest.mark.parametrize("block", ["lane_encoder", "lane_decoder"])
def test_cases(block, config):
    assert_passes(block, config)
