"""Area budgets of blocks: every block keeps its budget, and a block that does not is reported."""

import dataclasses
from pathlib import Path

import pytest
from cdu.delivery.blocks import BLOCKS, UNITS, changes
from cdu_spec import named_config
from cdu_synth.area import budgets
from cdu_tools.errors import MissingToolError

KEPT = budgets.read()
#: Blocks made of blocks that are measured here, as slow as ten others; benchmarks/area_budgets.py measures the first two too.
COMPOSED = ("compressor", "decompressor", *UNITS)


@pytest.fixture(scope="session")
def build():
    try:
        found = KEPT.build
    except MissingToolError as error:
        pytest.skip(str(error))
    if f"{found.name} {found.version}" != KEPT.yosys:
        pytest.skip(f"the budgets are for {KEPT.yosys}; {found.name} {found.version} maps a little differently")
    return found


def test_the_budgets_are_for_the_pinned_yosys():
    """Without this a new version in constraints.txt would skip every budget."""
    pins = (Path(__file__).parents[3] / "constraints.txt").read_text().splitlines()
    assert KEPT.yosys.replace(" ", "==") in pins, f"run `{budgets.WRITE}`"


@pytest.mark.parametrize("block", [name for name in BLOCKS if name not in COMPOSED])
def test_block_keeps_its_budget(block, build, nangate45, record_property):
    """A block of the same Verilog and the same sources as its budget has the budget's area; any other is measured."""
    config = named_config(KEPT.config)
    same = KEPT.origins.get(block) == KEPT.origin(block, config)
    ge = KEPT.ge[block] if same else KEPT.measure(block, config, nangate45, build)
    record_property("area", (block, ge))
    verdict = KEPT.verdict(block, ge)
    assert not verdict, verdict


def test_what_changes_is_measured_again():
    """Another width of a port makes another origin, the same block the same one."""
    config = named_config(KEPT.config)
    first, again, wider = (KEPT.origin("collector", one) for one in (config, config, config.override(packed_port_bits=256)))
    assert first == again != wider


def test_an_unchanged_block_has_the_area_of_its_budget(build, nangate45):
    """The budget is the measured area exactly, not only near it."""
    config = named_config(KEPT.config)
    if KEPT.origins.get("collector") != KEPT.origin("collector", config):
        pytest.skip(f"its budget is of other sources, so that it is measured: `{budgets.WRITE}` makes that quick again")
    assert round(KEPT.measure("collector", config, nangate45, build), 1) == KEPT.ge["collector"]


def test_a_block_that_grew_is_found(build, nangate45):
    """A port of twice the width of the budget's block exceeds the budget."""
    wider = named_config(KEPT.config).override(packed_port_bits=256)
    verdict = KEPT.verdict("collector", KEPT.measure("collector", wider, nangate45, build))
    assert verdict.startswith("collector: 4.9 kGE, budget 3.7 kGE, +")


def test_a_budget_says_with_what_its_block_is_built():
    kept = budgets.read()
    config = named_config(kept.config)
    assert {block: changes(block, config) for block in kept.ge if changes(block, config)} == kept.built_with
    assert kept.built_with["distributor"] == {"cdus": 2}


def test_every_block_has_a_budget_and_nothing_else_has():
    assert set(KEPT.ge) == set(BLOCKS) - set(UNITS)
    assert KEPT.pdk == "nangate45"  # the library of the fixture


@pytest.fixture
def two():
    return dataclasses.replace(KEPT, ge={"dct": 25_500.0, "idct": 1000.0})


@pytest.mark.parametrize("ge", [25_500, 26_264, 24_736])
def test_what_is_within_three_percent_is_allowed(two, ge):
    assert two.verdict("dct", ge) == ""


def test_what_is_not_allowed_is_said_with_its_size(two):
    assert two.verdict("dct", 26_900).startswith("dct: 26.9 kGE, budget 25.5 kGE, +5.5 %: more than 3 % are not allowed")
    assert two.verdict("dct", 26_266).startswith("dct: 26.3 kGE, budget 25.5 kGE, +3.0 %")
    assert "less than 3 %" in two.verdict("dct", 24_734)
    assert two.verdict("sfpr", 1234.5).startswith("sfpr: 1.2 kGE, no budget")
    for block, ge in (("dct", 26_900), ("dct", 20_000), ("sfpr", 1)):
        assert f"`python benchmarks/area_budgets.py --write --only {block}`" in two.verdict(block, ge)


def test_table_marks_what_is_wrong(two):
    head, *rows = budgets.table({"dct": 26_900.0, "idct": 1000.0, "sfpr": 18_000.0}, two)
    assert head.split() == ["block", "kGE", "budget", "change"]
    assert [row.split() for row in rows] == [
        ["dct", "26.90", "25.50", "+5.5", "%", "<--"],
        ["idct", "1.00", "1.00", "+0.0", "%"],
        ["sfpr", "18.00", "none", "<--"],
    ]
