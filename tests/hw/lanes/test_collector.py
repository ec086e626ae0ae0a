"""The collector: random and steady cases in Amaranth's simulator."""

import pytest
from cdu_spec.config import CduConfig
from cdu_verif.benches.in_amaranth import assert_passes


@pytest.mark.parametrize("options", [{}, {"cdus": 2}])
def test_cases(options):
    assert_passes("collector", CduConfig(**options))
