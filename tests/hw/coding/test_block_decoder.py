"""The decoders: ZVC, BRC and affine codes: random and steady cases in Amaranth's simulator."""

import pytest
from cdu_spec.config import CduConfig
from cdu_verif.benches.in_amaranth import assert_passes
from parameter_sets import one_at_once


@one_at_once({}, {"cdus": 4})
@pytest.mark.parametrize("block", ["zvc_decoder", "brc_decoder", "affine_decoder"])
def test_cases(block, options):
    assert_passes(block, CduConfig(**options))
