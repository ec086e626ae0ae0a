"""SFPR and its inverse: random and steady cases in Amaranth's simulator."""

import pytest
from cdu_spec.config import CONFIGS, CduConfig
from cdu_verif.benches.in_amaranth import assert_passes

EVERY = {"modes": CONFIGS["universal"].modes}


@pytest.mark.parametrize("options", [{}, EVERY, {"value_format": "bf16", "multiplier_stages": 1}])
@pytest.mark.parametrize("block", ["sfpr", "inverse_sfpr"])
def test_cases(block, options):
    assert_passes(block, CduConfig(**options))
