"""The cache: made once, by whoever needs it first; nothing is used that others could have put there or that is damaged."""

import os
import pwd
import subprocess
import sys
from pathlib import Path

import pytest
from cdu_tools import cache
from cdu_tools.compilers import cpp_compiler
from cdu_tools.errors import MissingToolError, UserError

NOBODY = 65534
SOURCE = 'extern "C" int answer() { return 42; }\n'
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv(cache.FOLDER_VARIABLE, str(tmp_path / "cache"))
    return tmp_path / "cache"


class Maker:
    """Fills an entry with two files, and counts how often."""

    def __init__(self):
        self.calls = 0

    def __call__(self, folder):
        self.calls += 1
        (folder / "library.so").write_bytes(bytes(range(256)))
        (folder / "parts").mkdir()
        (folder / "parts" / "list").write_text("list")


_ENTER = """
import time
from cdu_tools import cache

def fill(folder):
    (folder / "started").write_text("")
    time.sleep(0.5)
    print("filled")

cache.entry("test", ["same"], fill)
"""


def test_processes_that_need_the_same_entry_at_once(folder):
    command = [sys.executable, "-c", _ENTER]
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    printed = [process.communicate(timeout=120)[0] for process in processes]
    assert all(process.returncode == 0 for process in processes)
    assert sorted(printed) == ["", "", "filled\n"]
    (entry,) = (path for path in folder.iterdir() if path.is_dir())
    assert entry == cache.entry("test", ["same"], lambda folder: pytest.fail("made again"))


def test_processes_that_find_the_same_entry_damaged_at_once(folder):
    made = cache.entry("test", ["same"], lambda place: (place / "started").write_text("damaged"))
    (made / "started").write_text("else")
    test_processes_that_need_the_same_entry_at_once(folder)
    assert (made / "started").read_text() == ""


def test_what_an_ended_process_left_is_removed(folder):
    entry = cache.entry("test", ["left"], Maker())
    left = folder / f".{entry.name}.abc.partial"
    left.mkdir()
    (entry / "library.so").unlink()
    assert cache.entry("test", ["left"], Maker()) == entry
    assert not left.exists()


def _truncate(entry):
    os.truncate(entry / "library.so", 100)


def _empty(entry):
    os.truncate(entry / "library.so", 0)


def _flip(entry):
    content = bytearray((entry / "library.so").read_bytes())
    content[77] ^= 1
    (entry / "library.so").write_bytes(content)


def _add(entry):
    (entry / "parts" / "more").touch()


def _lose(entry):
    (entry / "parts" / "list").unlink()


def _lose_record(entry):
    (entry / "sha256.json").unlink()


def _garble_record(entry):
    (entry / "sha256.json").write_bytes(b"\xff{")


def _link(entry):
    (entry / "library.so").rename(entry.parent / "elsewhere")
    (entry / "library.so").symlink_to("../elsewhere")


def _link_folder(entry):
    entry.rename(entry.parent / "elsewhere")
    entry.symlink_to("elsewhere")


def _file_instead(entry):
    entry.rename(entry.parent / "elsewhere")
    entry.write_text("")


def _open_to_others(entry):
    entry.chmod(0o777)


def _foreign_file(entry):
    os.chown(entry / "library.so", NOBODY, NOBODY)


def _foreign_folder(entry):
    os.chown(entry, NOBODY, NOBODY)


@pytest.mark.parametrize(
    "damage",
    [
        *(_truncate, _empty, _flip, _add, _lose, _lose_record, _garble_record, _link, _link_folder, _file_instead),
        _open_to_others,
        pytest.param(_foreign_file, marks=as_root),
        pytest.param(_foreign_folder, marks=as_root),
    ],
)
def test_what_is_damaged_or_foreign_is_made_again(folder, damage):
    make = Maker()
    entry = cache.entry("test", [1], make)
    assert (cache.entry("test", [1], make), make.calls, cache.find("test", [1])) == (entry, 1, entry)
    damage(entry)
    assert cache.find("test", [1]) is None
    assert (cache.entry("test", [1], make), make.calls) == (entry, 2)
    assert (entry / "library.so").read_bytes() == bytes(range(256))
    assert not entry.is_symlink()
    assert (cache.entry("test", [1], make), make.calls) == (entry, 2)
    assert not list(folder.glob(".*.partial"))


def test_a_damaged_library_is_compiled_again_before_it_is_loaded():
    try:
        compiler = cpp_compiler("this test")
    except MissingToolError:
        pytest.skip("no C++ compiler")

    def make(place):
        (place / "answer.cpp").write_text(SOURCE)
        subprocess.run([compiler, "-shared", "-fPIC", "answer.cpp", "-o", "answer.so"], cwd=place, check=True)

    path = cache.entry("library", [SOURCE], make) / "answer.so"
    # In processes of their own: one in which a library is loaded ends when that is cut off.
    load = "import sys; from pathlib import Path; from cdu_tools import cache; "
    load += "sys.exit(cache.load_library(Path(sys.argv[1])).answer())"
    for size in (4000, 0):
        os.truncate(path, size)
        assert cache.entry("library", [SOURCE], make) / path.name == path
        assert subprocess.run([sys.executable, "-c", load, str(path)], check=False).returncode == 42


def test_what_the_system_does_not_load_is_said(tmp_path):
    (tmp_path / "text.so").write_text("no library")
    with pytest.raises(UserError, match=f"cannot use the cache .*text.so.*{cache.FOLDER_VARIABLE}"):
        cache.load_library(tmp_path / "text.so")


@as_root
def test_a_cache_of_somebody_else_is_not_used(folder):
    make = Maker()
    cache.entry("test", [1], make)
    os.chown(folder, NOBODY, NOBODY)
    for use in (lambda: cache.entry("test", [1], make), lambda: cache.find("test", [1])):
        with pytest.raises(UserError, match=f"belongs to user {NOBODY}, who could.*{cache.FOLDER_VARIABLE}"):
            use()


def test_a_cache_that_others_may_write_to_is_not_used(folder):
    cache.entry("test", [1], Maker())
    for mode in (0o770, 0o707, 0o1777):
        folder.chmod(mode)
        with pytest.raises(UserError, match=f"others may write to it .*{cache.FOLDER_VARIABLE}"):
            cache.entry("test", [1], Maker())
    folder.chmod(0o755)
    cache.entry("test", [1], lambda place: pytest.fail("made again"))


def test_a_new_cache_is_private(folder):
    before = os.umask(0)
    try:
        entry = cache.entry("test", [1], Maker())
    finally:
        os.umask(before)
    assert [path.stat().st_mode & 0o777 for path in (folder, entry)] == [0o700, 0o700]


def test_a_cache_that_cannot_be_written(folder, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    for place in (tmp_path / "file" / "cache", tmp_path / "file", Path("/dev/null"), tmp_path / ("n" * 256), "/proc/cdu"):
        monkeypatch.setenv(cache.FOLDER_VARIABLE, str(place))
        with pytest.raises(UserError, match=f"cannot use the cache .*{cache.FOLDER_VARIABLE} to another folder"):
            cache.entry("test", [], Maker())
        assert cache.find("test", []) is None


def test_a_read_only_cache_is_used_as_far_as_it_goes(ordinary_user, monkeypatch):
    with ordinary_user as place:
        monkeypatch.setenv(cache.FOLDER_VARIABLE, str(place))
        entry = cache.entry("test", [1], Maker())
        place.chmod(0o555)
        assert cache.entry("test", [1], Maker()) == entry
        with pytest.raises(UserError, match=r"cannot use the cache .*Permission denied"):
            cache.entry("test", [2], Maker())
        _truncate(entry)
        with pytest.raises(UserError, match=r"cannot use the cache .*Permission denied"):
            cache.entry("test", [1], Maker())
        place.chmod(0o700)


def test_where_the_cache_is(monkeypatch, tmp_path):
    assert cache.folder() == tmp_path / "cache"
    monkeypatch.delenv(cache.FOLDER_VARIABLE)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache.folder() == tmp_path / "xdg" / "cdu"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert cache.folder() == tmp_path / "home" / ".cache" / "cdu"

    def nobody(number):
        raise KeyError(number)

    monkeypatch.delenv("HOME")
    monkeypatch.setattr(pwd, "getpwuid", nobody)
    monkeypatch.setattr(cache.tempfile, "gettempdir", lambda: str(tmp_path))
    assert cache.folder() == tmp_path / f"cdu-{os.geteuid()}"
    assert cache.entry("test", [1], Maker()).is_dir()
