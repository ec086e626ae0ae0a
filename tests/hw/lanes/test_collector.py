"""The collector: random and steady cases in Amaranth's simulator."""

from cdu_spec.config import CduConfig
from cdu_verif.benches.in_amaranth import assert_passes
from parameter_sets import one_at_once


@one_at_once({}, {"cdus": 2})
def test_cases(options):
    assert_passes("collector", CduConfig(**options))
