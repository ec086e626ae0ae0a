"""Both ends of the value side: random jobs in Amaranth's simulator."""

import pytest
from cdu_spec.config import CONFIGS, CduConfig
from cdu_verif.benches.in_amaranth import assert_passes
from parameter_sets import one_at_once

EVERY = {"modes": CONFIGS["universal"].modes}


@one_at_once({}, {**EVERY, "value_format": "bf16"})
@pytest.mark.parametrize("block", ["value_front", "value_back"])
def test_cases(block, options):
    assert_passes(block, CduConfig(**options), steady=False)
