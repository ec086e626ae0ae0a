"""Wording of what is missing, the same over all commands."""

import gzip

import numpy as np
import pytest
from cdu_tools.distribution import missing
from cdu_tools.errors import by_system, not_installed, reason, unreadable
from cdu_tools.texts import extents


def _caught(function, *arguments):
    with pytest.raises((OSError, ValueError)) as caught:
        function(*arguments)
    return caught.value


def test_reasons_have_no_form_of_python(tmp_path):
    (tmp_path / "text").write_bytes(b"\xe9 no array, no gzip file")
    path = tmp_path / "text"
    assert reason(_caught((tmp_path / "absent").read_text)) == "No such file or directory"
    assert reason(_caught(path.read_text, "utf-8")) == "it is no text in UTF-8"
    assert reason(_caught(gzip.decompress, path.read_bytes())) == "it is no gzip file"
    assert reason(_caught(np.load, path)) == "it is no file of arrays"
    assert reason(ValueError("it has no columns")) == "it has no columns"


def test_files_and_folders_that_are_missing_or_of_another_kind(tmp_path):
    (tmp_path / "file").touch()
    assert unreadable(tmp_path / "absent") == f"cannot read {tmp_path / 'absent'}: No such file or directory"
    assert unreadable(tmp_path) == f"cannot read {tmp_path}: Is a directory"
    assert unreadable(tmp_path / "file", folder=True) == f"cannot read {tmp_path / 'file'}: Not a directory"


def test_programs_packages_and_extras_have_one_wording():
    for error in (not_installed("X", "`pip install x`"), not_installed("X", by_system("x")), missing("X", "train")):
        assert str(error).startswith("X is not installed: add it with ")
    assert "as root" in by_system("g++")


def test_shapes():
    assert [extents(shape) for shape in ((), (64,), (2, 3))] == ["()", "(64)", "(2, 3)"]
