"""The DCT: random and steady cases in Amaranth's simulator."""

import pytest
from cdu_spec.config import CduConfig
from cdu_verif.benches.in_amaranth import assert_passes


@pytest.mark.parametrize("options", [{}, {"sample_bits": 9}, {"dct_stages": 1}])
def test_cases(options):
    assert_passes("dct", CduConfig(**options))
