"""The splitter: random and steady cases in Amaranth's simulator."""

from cdu_spec.config import CONFIGS, CduConfig
from cdu_verif.benches.in_amaranth import assert_passes
from parameter_sets import one_at_once

EVERY = {"modes": CONFIGS["universal"].modes}


@one_at_once({}, {"cdus": 3}, EVERY)
def test_cases(options):
    assert_passes("splitter", CduConfig(**options))
