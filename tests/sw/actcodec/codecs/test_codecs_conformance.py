"""Rows C1 to C7, C9 to C11 and C14 of docs/user/plugin.md: every codec of the catalogue, every width, every format, on the CPU.

Every codec in the catalogue is tested. Codecs to which a row does not apply are found by the suite, never by their names.
"""

from functools import cache

import pytest
import torch
from actcodec.testing import rows
from actcodec.testing.pairwise import pairs, pairwise
from catalog_facts import SUBJECTS

every_codec = pytest.mark.parametrize("subject", SUBJECTS.values(), ids=str)


@cache
def product(row):
    """Return the cases of a row for all codecs."""
    return [case for subject in SUBJECTS.values() for case in row.product(subject)]


def in_pairs(check):
    """Parametrise over cases in which all pairs of codec, width, format, shape and backend occur.

    `make full` has the whole product.
    """
    return pytest.mark.parametrize("case", chosen(rows.ROWS[check.__name__]), ids=str)


@cache
def chosen(row):
    """Return the cases that are tested each time."""
    return pairwise(product(row), lambda case: case.factors)


@in_pairs(rows.c1_extremes_saturate_and_do_not_wrap)
def test_c1_extremes_saturate_and_do_not_wrap(case):
    rows.c1_extremes_saturate_and_do_not_wrap(case)


@in_pairs(rows.c2_zero_range)
def test_c2_zero_range(case):
    rows.c2_zero_range(case)


@in_pairs(rows.c2_subnormal_and_huge_groups)
def test_c2_subnormal_and_huge_groups(case):
    rows.c2_subnormal_and_huge_groups(case)


@in_pairs(rows.c3_stochastic_rounding_has_no_mean_error)
def test_c3_stochastic_rounding_has_no_mean_error(case):
    rows.c3_stochastic_rounding_has_no_mean_error(case)


@in_pairs(rows.c4_padding_is_in_no_range)
def test_c4_padding_is_in_no_range(case):
    rows.c4_padding_is_in_no_range(case)


@every_codec
def test_c4_sizes_that_do_not_fill_a_group(subject):
    rows.c4_sizes_that_do_not_fill_a_group(subject)


@every_codec
def test_c5_sizes(subject):
    rows.c5_sizes(subject)


@in_pairs(rows.c6_not_a_number_and_infinity)
def test_c6_not_a_number_and_infinity(case):
    rows.c6_not_a_number_and_infinity(case)


@every_codec
def test_c7_more_than_65535_groups(subject):
    rows.c7_more_than_65535_groups(subject)


@in_pairs(rows.c9_negative_numbers_are_rounded_as_positive_ones_are)
def test_c9_negative_numbers_are_rounded_as_positive_ones_are(case):
    rows.c9_negative_numbers_are_rounded_as_positive_ones_are(case)


@in_pairs(rows.c10_packed_bytes_decode_to_the_same_bits)
def test_c10_packed_bytes_decode_to_the_same_bits(case):
    rows.c10_packed_bytes_decode_to_the_same_bits(case)


@in_pairs(rows.c11_decoding_after_the_codec_has_changed)
def test_c11_decoding_after_the_codec_has_changed(case):
    rows.c11_decoding_after_the_codec_has_changed(case)


@in_pairs(rows.c14_the_path_under_test_is_the_cpus)
def test_c14_the_path_under_test_is_the_cpus(case):
    rows.c14_the_path_under_test_is_the_cpus(case)


@pytest.mark.parametrize("row", rows.ROWS.values(), ids=lambda row: row.name)
def test_every_pair_of_the_full_product_is_tested(row):
    few, cases = chosen(row), product(row)
    assert set(few) <= set(cases)
    tried, all_pairs = ({pair for case in some for pair in pairs(case.factors)} for some in (few, cases))
    assert tried == all_pairs
    assert len(few) < len(cases)


@pytest.mark.campaign
@every_codec
@pytest.mark.parametrize("row", rows.ROWS.values(), ids=lambda row: row.name)
def test_full_product(row, subject):
    """Check a row for a codec in every width, format, shape and backend."""
    for case in row.product(subject):
        torch.manual_seed(0)
        try:
            row.check(case)
        except BaseException as error:
            error.add_note(str(case))
            raise
