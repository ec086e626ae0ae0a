"""Check which seeds the table of families is measured with."""

from functools import partial

import families
import pytest
from actcodec.policies.recommended import GOOD
from actcodec.study.families import rows_of
from toy_of_the_zoo import TOY


@pytest.fixture
def benchmark(monkeypatch, tmp_path):
    """Give benchmarks/families.py the toy as its only model."""
    monkeypatch.setattr(families, "ZOO", {"toy.model": TOY})
    monkeypatch.setattr(families, "KEPT", tmp_path)
    monkeypatch.setattr(families, "rows_of", partial(rows_of, steps=4))
    monkeypatch.setattr(families, "FAMILIES", {"CNN": ""})
    return families


def test_other_seeds_are_for_what_is_good_so_far_and_nothing_is_measured_twice(benchmark, monkeypatch):
    policies = ["none", "bf16", "division"]
    rows = benchmark.measured(["toy.model"], policies, 3, 1)
    seeds = {name: [one.seed for one in rows if one.policy == name] for name in policies}
    assert seeds == {"none": [0, 1, 2], "bf16": [0, 1, 2], "division": [0]}
    (division,) = (one for one in rows if one.policy == "division")
    assert division.worse.cosine < GOOD
    monkeypatch.setattr(benchmark, "rows_of", lambda *given, **more: pytest.fail("measured twice"))
    assert benchmark.measured(["toy.model"], policies, 3, 1) == rows
    table = benchmark.models_table(rows)
    assert [row[3] for row in table.rows][:3] == ["3", "3", "1"]
