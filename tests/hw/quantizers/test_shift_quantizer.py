"""The shift quantiser and its inverse: random and steady cases in Amaranth's simulator."""

import pytest
from cdu_spec.config import CduConfig
from cdu_verif.benches.in_amaranth import assert_passes
from parameter_sets import one_at_once


@one_at_once({}, {"rounding": "half_away"})
@pytest.mark.parametrize("block", ["shift_quantizer", "inverse_shift_quantizer"])
def test_cases(block, options):
    assert_passes(block, CduConfig(**options))
