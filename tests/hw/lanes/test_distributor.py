"""Distributor and gatherer of blocks: random and steady cases in Amaranth's simulator."""

import pytest
from cdu_spec.config import CONFIGS, CduConfig
from cdu_verif.benches.in_amaranth import assert_passes
from parameter_sets import one_at_once

EVERY = {"modes": CONFIGS["universal"].modes}


@one_at_once({}, {"cdus": 3}, EVERY)
@pytest.mark.parametrize("block", ["distributor", "gatherer"])
def test_cases(block, options):
    assert_passes(block, CduConfig(**options))
