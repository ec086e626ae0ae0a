"""The coder of GMC in Amaranth's simulator."""

import pytest
from cdu.coding.gmc_words import COLUMN_BITS, field_bits
from cdu_spec import gmc as spec
from cdu_spec.config import CduConfig
from cdu_verif.benches.in_amaranth import assert_passes
from parameter_sets import one_at_once


@one_at_once({}, {"cdus": 4}, {"cdus": 8, "packed_port_bits": 128})
@pytest.mark.parametrize("block", ["gmc_encoder", "gmc_decoder"])
def test_cases(block, options):
    assert_passes(block, CduConfig(**options))


def test_no_column_is_longer_than_the_blocks_are_built_for():
    """Two raw groups and the longest symbols reach the bound, and no group with a mask is longer than a raw one."""
    symbols = max(map(len, sum(spec.A_CODES, ()))) + max(map(len, sum(spec.B_CODES, ())))
    assert 2 * spec.GROUP_VALUES * field_bits(spec.RAW_CLASS) + symbols == COLUMN_BITS
    for group_class in spec.CODED_CLASSES:
        words = spec.MASK_CODES[min(group_class, spec.LAST_MASK_CLASS) - 1]
        for mask, word in enumerate(words, 1):
            assert len(word) + mask.bit_count() * field_bits(group_class) <= spec.GROUP_VALUES * field_bits(spec.RAW_CLASS)
