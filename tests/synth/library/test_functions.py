"""Functions of pins: every operator of Liberty's notation, and functions that are malformed."""

import pytest
from cdu_synth.library.functions import evaluate


@pytest.mark.parametrize(
    ("function", "truth"),
    [
        ("!(A & B)", "1110"),
        ("A B", "0001"),
        ("A' + B", "1101"),
        ("A ^ B", "0110"),
        ("(A|B)'", "1000"),
        ("!A * !B", "1000"),
        ("1", "1111"),
    ],
)
def test_functions(function, truth):
    rows = [{"A": a, "B": b} for a in (False, True) for b in (False, True)]
    assert "".join(str(int(evaluate(function, row))) for row in rows) == truth


@pytest.mark.parametrize("function", ["", "A &", "(A", "A)", "!"])
def test_malformed_functions_are_refused(function):
    with pytest.raises(ValueError, match="function"):
        evaluate(function, {"A": True})
