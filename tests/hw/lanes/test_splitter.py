"""The splitter: random and steady cases in Amaranth's simulator."""

import pytest
from cdu_spec.config import CONFIGS, CduConfig
from cdu_verif.benches.in_amaranth import assert_passes

EVERY = {"modes": CONFIGS["universal"].modes}


@pytest.mark.parametrize("options", [{}, {"cdus": 3}, EVERY])
def test_cases(options):
    assert_passes("splitter", CduConfig(**options))
