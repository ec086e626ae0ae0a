"""Advice about names that are not known."""

from cdu_tools.near_names import advice, either, unknown

KNOWN = ("dct", "idct", "zvc_encoder", "Mixed")


def test_a_near_name_is_suggested_and_the_list_left_out():
    assert unknown("block", "zvc_encodr", KNOWN) == "unknown block 'zvc_encodr': did you mean zvc_encoder?"
    assert advice("dctt", KNOWN) == "did you mean dct or idct?"


def test_case_and_hyphens_in_front_do_not_matter():
    assert advice("MIXED", KNOWN) == "did you mean Mixed?"
    assert advice("--aaaa", ["--bbbb"]) == "use --bbbb"
    assert advice("--jsn", ["--json", "--set"]) == "did you mean --json?"


def test_without_a_near_name_all_are_listed_or_the_other_advice_is_given():
    assert advice("", KNOWN) == "use dct, idct, zvc_encoder, Mixed"
    assert advice("qqqq", KNOWN, "use a block of `cdu list --all`") == "use a block of `cdu list --all`"


def test_names_to_choose_from():
    assert [either(names) for names in (["a"], ["a", "b"], ["a", "b", "c"])] == ["a", "a or b", "a, b or c"]
