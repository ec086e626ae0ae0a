"""The page of compiled steps: rows that stay until their network is measured again, and tables that are those of the rows."""

import dataclasses
import shutil

import pytest
from compiled_budgets import lowest, read_budgets
from compiled_means import EAGER, MEANS
from compiled_networks import NETWORKS
from compiled_page import BEST, CSV, PAGE, ROWS, Figures, Row, best, read_rows, table, write_page, write_rows
from torch_means import PLAIN

OWN, BUDGET = "hooks, int8-rows", "compiled, a budget"
FIGURES = Figures(
    peak=3 << 20,
    kept=2 << 20,
    resident=None,
    parameters=1 << 20,
    of_eager=0.5,
    time=0.9,
    seconds=0.1,
    cosine=0.9996,
    same_loss=True,
    first_cpu=4.0,
    first_wall=5.0,
)


def row(means, network="GPT", precision="float32", vectors="AVX2", error="", **figures):
    found = None if error else dataclasses.replace(FIGURES, **figures)
    return Row(network, precision, vectors, means, found, error)


def test_rows_are_replaced_by_network_precision_and_vectors(tmp_path):
    path = tmp_path / "rows.json"
    old, others = row(EAGER, of_eager=1.0), [row(EAGER, precision="bf16 autocast"), row(EAGER, vectors="AVX512")]
    new = [row(EAGER, of_eager=0.25), row("FP8 pass", error="RuntimeError: no\nmore")]
    write_rows(path, [old, *others])
    write_rows(path, new)
    assert read_rows(path) == [*new, *others], "in the place of the old ones"


def test_a_table_says_what_failed():
    found = table([row(EAGER, resident=7 << 20), row(PLAIN), row("FP8 pass", first_cpu=6.0), row(OWN, error="E: no\nmore")])
    assert found.rows[0][:5] == (EAGER, "3.0", "0.500", "2.0", "7.0")
    assert found.rows[0][-3:] == ("", "", "")
    assert found.rows[2][-3:] == ("6.0", "5.0", "1.50")
    assert found.rows[3][:3] == (OWN, "E: no", "")


@pytest.mark.parametrize(
    ("figures", "found"),
    [
        ({"of_eager": 0.4, "time": 1.004}, (OWN, "0.400")),
        ({"of_eager": 0.5}, (OWN, "0.500")),
        ({"of_eager": 0.4, "time": 1.006}, ("none", "")),
        ({"of_eager": 0.4, "cosine": 0.9994}, ("none", "")),
    ],
)
def test_the_lowest_peak_keeps_both_goals(figures, found):
    rows = best([row(EAGER, of_eager=1.0), row(PLAIN), row(OWN, **figures)], {}).rows
    assert [cells[3:] for cells in rows] == [(PLAIN, "0.500", *found)]


@pytest.mark.parametrize(("time", "of_eager", "named"), [(0.9, 0.3, BUDGET), (0.9, 0.45, OWN), (1.1, 0.45, BUDGET)])
def test_a_lower_budget_counts_as_this_project(time, of_eager, named):
    rows = [row(EAGER, of_eager=1.0), row(PLAIN), row(OWN, of_eager=0.4, time=time)]
    found = best([*rows, *(dataclasses.replace(one, network="ViT") for one in rows)], {rows[0].setting: of_eager})
    assert found.rows[0][5:7] == (named, f"{0.4 if named == OWN else of_eager:.3f}")
    assert all("budget" not in cell for cells in found.rows[1:] for cell in cells)


def test_every_network_on_the_page_was_measured_with_all_means():
    rows = read_rows(ROWS)
    assert {one.network for one in rows} <= set(NETWORKS)
    for setting in {one.setting for one in rows}:
        assert [one.means for one in rows if one.setting == setting] == list(MEANS)


def test_the_tables_are_those_of_the_rows(tmp_path):
    page = tmp_path / PAGE.name
    shutil.copy(PAGE, page)
    BEST.put(page, "\n")
    write_page(page, read_rows(ROWS), lowest(read_budgets()))
    assert page.read_text("utf-8") == PAGE.read_text("utf-8")
    assert page.with_suffix(".csv").read_text("utf-8") == CSV.read_text("utf-8")
