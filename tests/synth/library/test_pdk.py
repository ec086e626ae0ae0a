"""The table of known libraries, and how libraries are found."""

import re

import pytest
from cdu_synth.library import fetch, pdk
from cdu_tools.errors import MissingToolError

SHA256 = re.compile(r"[0-9a-f]{64}")
# A commit in full: what is behind the address cannot change.
ADDRESS = re.compile(r"https://raw\.githubusercontent\.com/[\w.-]+/[\w.-]+/[0-9a-f]{40}(/[\w.-]+)+")


@pytest.mark.parametrize("known", pdk.KNOWN.values(), ids=lambda known: known.name)
def test_every_known_library_says_what_it_is_and_where_it_comes_from(known):
    assert known.title
    assert known.corner
    assert known.licence in ("Apache-2.0", "BSD-3-Clause")
    assert known.terms.startswith("https://")
    for file in known.files:
        assert SHA256.fullmatch(file.sha256)
        assert ADDRESS.fullmatch(file.address)
        assert file.size > 0
        # Both packed or both not, so that the bytes of the address are the file.
        assert file.address.endswith(".gz") == file.name.endswith(".gz")


def test_no_file_belongs_to_two_libraries():
    files = [file for known in pdk.KNOWN.values() for file in known.files]
    assert len({file.name for file in files}) == len({file.sha256 for file in files}) == len(files)


@pytest.mark.parametrize("name", pdk.KNOWN)
def test_the_libraries_that_are_here_are_the_published_ones(name):
    """Ties the table to real files; $CDU_PDK_DIR may hold others of the same names."""
    folders = [folder for folder in pdk._folders()[1:] if any(source.name == name for source in pdk._in_folder(folder))]
    if not folders:
        pytest.skip(pdk.adding(name))
    for published in pdk.KNOWN[name].files:
        path = fetch.present(published, folders[0])
        assert fetch.unpacked_sha256(path, path.suffix == ".gz") == published.sha256


def test_a_library_with_a_file_missing_is_not_there(tiny_file, tmp_path, monkeypatch):
    monkeypatch.setenv(pdk.FOLDER_VARIABLE, str(tmp_path / "own"))
    (tmp_path / "own").mkdir()
    stems = [pdk.stem(tmp_path / file.name) for file in pdk.KNOWN["asap7"].files]
    for number, name in enumerate(stems):
        there = [source for source in pdk._in_folder(tmp_path / "own") if source.name == "asap7"]
        assert not there, f"found with {number} of {len(stems)} files"
        (tmp_path / "own" / f"{name}.lib").write_text(tiny_file.read_text())
    assert pdk.find("asap7").files == tuple(tmp_path / "own" / f"{name}.lib" for name in stems)


def test_packed_and_unpacked_are_one_file(tiny_file, tmp_path, monkeypatch):
    monkeypatch.setenv(pdk.FOLDER_VARIABLE, str(tmp_path))
    for name in ("sky130hd_tt.lib", "sky130hd_tt.lib.gz"):
        (tmp_path / name).write_text(tiny_file.read_text())
    assert pdk.find("sky130hd").files == (tmp_path / "sky130hd_tt.lib",)


def test_what_is_missing_is_said_with_the_command(tmp_path, monkeypatch):
    monkeypatch.setattr(pdk, "_folders", lambda: [tmp_path, tmp_path, tmp_path])
    with pytest.raises(
        MissingToolError, match=r"the cell library sky130hd is not installed: add it with `cdu pdk fetch sky130hd`"
    ):
        pdk.find("sky130hd")
