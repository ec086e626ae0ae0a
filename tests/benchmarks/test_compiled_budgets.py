"""Budgets and measured peaks: their difference, and whether more bytes reduce the error enough."""

import compiled_budgets
import pytest
from actcodec.graph.plan import TooLittleError
from compiled_budgets import _FLOOR, Asked, lowest, summary, table, write

GPT, VIT = ("GPT", "float32", "AVX2"), ("ViT", "bf16 autocast", "AVX2")
ROWS = [
    Asked(*GPT, 100, 99, 0.2, 0.9995, 1.1),
    Asked(*GPT, 200, 203, 0.4, 0.9999, 0.9),
    Asked(*VIT, 50, 50, 0.1, 0.9, 1.0),
]


def test_the_distance_is_a_part_of_the_budget():
    assert [cells[5] for cells in table(ROWS).rows] == ["-1.00 %", "+1.50 %", "+0.00 %"]


def test_the_farthest_peak_is_named():
    assert summary(ROWS) == (
        "3 of 3 peaks are within 2 % of their budgets; the farthest is +1.50 % off (GPT, AVX2). "
        "On every network more bytes bring no lower peak and no lower cosine."
    )


def test_rows_of_other_networks_stay(tmp_path, monkeypatch):
    page = tmp_path / "page.md"
    page.write_text("<!-- compiled-budgets: begin -->\n<!-- compiled-budgets: end -->\n", "utf-8")
    monkeypatch.setattr(compiled_budgets, "PAGE", page)
    monkeypatch.setattr(compiled_budgets, "ROWS", page.with_suffix(".csv"))
    old = Asked(*GPT, 3 << 20, 2 << 20, 0.2, 0.9995, 1.1), Asked(*VIT, (1 << 20) + 1, 1 << 20, 0.2, 0.9995, 1.1)
    page.with_suffix(".csv").write_text(table(old).csv(), "utf-8")
    more = [Asked(*GPT, 100, 98, 0.2, 0.9995, 1.1)]
    write(more)
    assert page.with_suffix(".csv").read_text("utf-8") == table([old[1], *more]).csv()
    assert "-2.00 % off (GPT, AVX2)" in page.read_text("utf-8")


@pytest.mark.parametrize(("peak", "cosine"), [(98, 0.9999), (203, 0.9994)])
def test_a_budget_that_is_not_worth_its_bytes_is_named(peak, cosine):
    text = summary([ROWS[0], Asked(*GPT, 2 << 20, peak, 0.3, cosine, 0.9)])
    assert text.endswith("More bytes brought a lower peak or a lower cosine than the budget before: GPT, AVX2 at 2.00 MiB.")


def test_the_floor_is_read_in_the_refusal():
    found = _FLOOR.search(f"TooLittleError: {TooLittleError(2, 24_536_678)}")
    assert found is not None
    assert int(found[1]) == 24_536_678


def test_the_lowest_peak_keeps_both_goals():
    close = [
        Asked(*VIT, 60, 60, 0.3, 0.9994, 1.0),
        Asked(*VIT, 70, 70, 0.35, 0.9996, 1.006),
        Asked(*VIT, 80, 80, 0.4, 0.9996, 1.004),
    ]
    assert lowest([*ROWS, *close]) == {GPT: 0.4, VIT: 0.4}
    assert lowest(close[:2]) == {}
