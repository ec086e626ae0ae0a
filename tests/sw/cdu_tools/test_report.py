"""Tables, pages and reports."""

import csv
import io

import pytest
from cdu_tools.errors import UserError
from cdu_tools.report import Page, Report, Table, json_text, table_row

TABLE = Table(
    ["block", "kGE", "share", "speed", "note", "shape"],
    [["dct", "1,026.98", "12 (3%)", "-", "12/2", ""], ["a|b", "-5", "0.5x", "+3.1e-05", "7", "8"]],
)


def test_columns_of_numbers_stand_at_the_right():
    assert TABLE.markdown().splitlines() == [
        "| block | kGE | share | speed | note | shape |",
        "| --- | --: | --: | --: | --- | --: |",
        "| dct | 1,026.98 | 12 (3%) | - | 12/2 |  |",
        "| a\\|b | -5 | 0.5x | +3.1e-05 | 7 | 8 |",
    ]
    assert table_row(["x", 3]) == "| x | 3 |"


def test_a_table_is_csv_too():
    assert list(csv.reader(io.StringIO(TABLE.csv()))) == [TABLE.header, *TABLE.rows]


def test_every_row_is_as_wide_as_the_header():
    with pytest.raises(AssertionError):
        Table(["a", "b"], [["1"]])


def test_a_page_has_title_parts_and_facts():
    page = Page("Cost", ["First.", "", Table(["a"], []), Table(["a"], [["1"]])], {"command": "`cdu synth`", "seed": "3"})
    assert page.markdown() == "# Cost\n\nFirst.\n\n| a |\n| --: |\n| 1 |\n\n- command: `cdu synth`\n- seed: 3\n"
    assert Page("Cost", ["First."]).markdown() == "# Cost\n\nFirst.\n"


def test_the_files_of_a_report_are_written_whole(tmp_path):
    report = Report({"a": 1}, {"report.json": json_text({"a": 1}), "area.png": b"\x89PNG"})
    assert report.write(tmp_path) == [tmp_path / "report.json", tmp_path / "area.png"]
    assert (tmp_path / "report.json").read_text() == '{\n  "a": 1\n}\n'
    assert (tmp_path / "area.png").read_bytes() == b"\x89PNG"
    with pytest.raises(UserError, match="cannot write"):
        report.write(tmp_path / "absent")
