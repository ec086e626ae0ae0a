"""The alignment buffer, both ways: random and steady cases in Amaranth's simulator."""

import pytest
from cdu_spec.config import CONFIGS, CduConfig
from cdu_verif.benches.in_amaranth import assert_passes

EVERY = {"modes": CONFIGS["universal"].modes}


@pytest.mark.parametrize("options", [{}, {"cdus": 4}, EVERY])
@pytest.mark.parametrize("block", ["alignment_buffer", "inverse_alignment_buffer"])
def test_cases(block, options):
    assert_passes(block, CduConfig(**options))
