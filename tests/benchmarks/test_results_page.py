"""The page of results: summaries of measurements, with all rows of their tables in files beside it."""

import csv
import re
from pathlib import Path

import digest
import pytest
import results
from actcodec.policies.recommended import recommended
from actcodec.study.foreign import FAMILIES

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "evidence"
PAGE = FOLDER / "results.md"
MEASURED = """# A report

Two runs.

### slow of them

| block | kGE | note |
|---|--:|---|
| dct | 25.49 | x |
| sfpr | 18.23 | y |

fast, too:

| block | kGE | note |
|---|--:|---|
| dct | 1,026.98 |  |

| case | figure |
|---|---|
| -1..1 | 3 |

- versions: cdu 0.1.0

![All](all.png)
"""


def test_a_section_is_a_summary_and_files():
    text, files, notes = digest.digest("name", MEASURED, ("blocks", "cases"), digest.first("blocks", "of", "kGE", block="dct"))
    assert list(files) == ["results_name_blocks.csv", "results_name_cases.csv"]
    kinds = list(files.values())
    assert kinds[0].header == ("of", "block", "kGE", "note")
    assert kinds[0].rows == (
        ("slow of them", "dct", "25.49", "x"),
        ("slow of them", "sfpr", "18.23", "y"),
        ("fast, too", "dct", "1,026.98", ""),
    )
    assert [digest.read(table.csv()) for table in kinds] == kinds
    assert notes == ["versions: cdu 0.1.0"]
    parts = text.split("\n\n")
    assert "| slow of them | 25.49 |\n| fast, too | 1,026.98 |" in parts[1]
    assert parts[-1] == "![All](all.png)"
    assert parts[-2].startswith("All rows: [results_name_blocks.csv](results_name_blocks.csv)")


def test_tables_without_a_name_are_an_error():
    with pytest.raises(ValueError, match="2 kinds of tables"):
        digest.digest("name", MEASURED, ("",), lambda found: "")


def test_summaries_are_those_of_the_files():
    bodies = results.standing(PAGE.read_text(encoding="utf-8"))
    for section in results.SECTIONS:
        files = {name: FOLDER / digest.file_name(section.name, name) for name in section.tables}
        tables = {name: digest.read(file.read_text(encoding="utf-8")) for name, file in files.items()}
        assert section.summary(tables) in bodies[section.title], section.title


def test_a_figure_is_listed_with_its_keys():
    summary = digest.listed("Area", "", "kGE", "block", "note", note="x")
    table = digest.Table(("block", "kGE", "note"), (("dct", "25.49", "x"), ("sfpr", "18.23", "y"), ("idct", "29.35", "x")))
    assert summary({"": table}) == "Area: 25.49 (dct, x), 29.35 (idct, x)."


def test_what_is_not_measured_again_stays_as_it_is():
    page = PAGE.read_text(encoding="utf-8")
    assert results.write_page(results.introduction(page), results.standing(page)) == page


def test_notes_stay_and_are_replaced_by_section(monkeypatch):
    monkeypatch.chdir(ROOT)
    before = results.NOTES.read_text(encoding="utf-8")
    assert results.write_notes({}) == before
    kept = [line for line in before.splitlines() if not line.startswith("area,")]
    assert [line for line in results.write_notes({"area": ["new"]}).splitlines() if line != "area,new"] == kept


def test_a_subject_is_short_and_every_file_of_it_is_there():
    page = PAGE.read_text(encoding="utf-8")
    for title, body in results.standing(page).items():
        assert body != results.MISSING, title
        linked = re.findall(r"\]\((results_\w+\.csv)\)", body)
        assert linked, title
        said = [line for line in body.splitlines() if line and ".csv" not in line and not line.startswith("![")]
        assert len(said) <= 15, title
    files = set(re.findall(r"\]\((results_\w+\.csv)\)", page))
    assert files == {path.name for path in FOLDER.glob("results_*.csv")}
    for name in files:
        header, *rows = csv.reader((FOLDER / name).open(encoding="utf-8"))
        assert rows, name
        assert {len(row) for row in rows} == {len(header)}, name


def test_the_introduction_says_what_is_recommended():
    best = [(recommended(family), recommended(family).families[family]) for family in FAMILIES]
    ratios = [one.ratio for policy, one in best if policy.policy.name in ("blpa-coded", "transformer") and one.cosine >= 0.99]
    words = dict(enumerate(("no", "one", "two", "three", "four", "five", "six", "seven")))
    page = " ".join(PAGE.read_text(encoding="utf-8").split())
    assert f"On {words[len(ratios)]} of {words[len(best)]} kinds of networks" in page
    assert f"{min(ratios):.1f} to {max(ratios):.0f} times at a gradient cosine of 0.99 or more" in page
