"""SFPR and its inverse: random and steady cases in Amaranth's simulator."""

import pytest
from cdu_spec.config import CONFIGS, CduConfig
from cdu_verif.benches.in_amaranth import assert_passes
from parameter_sets import one_at_once

EVERY = {"modes": CONFIGS["universal"].modes}


@one_at_once({}, EVERY, {"value_format": "bf16", "multiplier_stages": 1})
@pytest.mark.parametrize("block", ["sfpr", "inverse_sfpr"])
def test_cases(block, options):
    assert_passes(block, CduConfig(**options))
