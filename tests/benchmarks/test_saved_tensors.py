"""Check the table of operations and of the tensors that they save."""

import csv

import pytest
import saved_tensors
from actcodec.study.torch_operations import Outcome
from cdu_tools.report import Table
from saved_tensors import reason, row

HEADER, *ROWS = csv.reader(saved_tensors.ROWS.read_text(encoding="utf-8").splitlines())


@pytest.mark.parametrize(
    ("operation", "kept"),
    [
        ("amax", "bits, exactly"),
        ("sqrt", "exactly"),
        ("nn.functional.relu6", "bits"),
        ("nn.functional.gelu", "values"),
        ("nn.functional.conv2d", "values"),
        ("scatter_reduce.amax", "exactly"),
        ("nn.functional.cosine_similarity", "exactly"),
        ("nn.functional.normalize", "values, exactly"),
        ("linalg.vector_norm", "values, exactly"),
        ("std", "values, exactly"),
        ("cdist", "exactly"),
        ("index_add", "sizes"),
        ("scatter_reduce.mean", "sizes"),
    ],
)
def test_the_table_says_what_is_kept(operation, kept):
    (found,) = [row[2] for row in ROWS if row[0] == operation]
    assert found == kept


def test_the_table_says_why_of_all_that_is_exact():
    assert len(ROWS) > 250
    for name, _, kept, why in ROWS:
        assert why == (reason(name) if "exactly" in kept else ""), name


def test_the_page_shows_rows_of_the_table():
    shown = saved_tensors.shown(Table(HEADER, ROWS))
    assert saved_tensors.MARKS.parts(saved_tensors.PAGE)[1].strip() == shown


def test_an_operation_that_is_exact_without_a_reason_stops_the_command():
    outcome = Outcome("new_operation 0 function", "", 0.0, frozenset({"exact"}), frozenset({"NewBackward0"}))
    with pytest.raises(ValueError, match="new_operation keeps tensors exactly: say why in _REASONS, or code them"):
        row("new_operation", [outcome])
