"""Writing files: any kind of path, concurrent writers, and interruptions."""

import os
import resource
import signal
import stat
import subprocess
import sys
import threading
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

import pytest
from cdu_tools.errors import UserError
from cdu_tools.files import check_target, write_parts, write_whole

NOBODY = 65534
OLD, NEW = b"what was there", b"what is new"


@contextmanager
def umask(mask):
    before = os.umask(mask)
    try:
        yield
    finally:
        os.umask(before)


def mode(path):
    return stat.S_IMODE(path.lstat().st_mode)


def test_new_files_by_umask_and_old_ones_with_their_mode(tmp_path):
    for mask in (0o022, 0o077, 0o002):
        with umask(mask):
            write_whole(tmp_path / f"{mask}", NEW)
        assert mode(tmp_path / f"{mask}") == 0o666 & ~mask
    for bits in (0o600, 0o640, 0o755, 0o200, 0o4755):
        target = tmp_path / "old"
        target.write_bytes(OLD)
        target.chmod(bits)
        write_whole(target, NEW)
        assert mode(target) == bits & 0o777
        target.chmod(0o600)
        assert target.read_bytes() == NEW
    assert {path.name for path in tmp_path.iterdir()} == {"18", "63", "2", "old"}


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_root_keeps_the_owner(tmp_path):
    target = tmp_path / "file"
    target.write_bytes(OLD)
    os.chown(target, NOBODY, 3)
    target.chmod(0o640)
    write_whole(target, NEW)
    assert (target.stat().st_uid, target.stat().st_gid, mode(target)) == (NOBODY, 3, 0o640)


def test_read_only_files_are_not_replaced(ordinary_user):
    with ordinary_user as folder:
        (folder / "file").write_bytes(OLD)
        (folder / "file").chmod(0o444)
        for attempt in (lambda: write_whole(folder / "file", NEW), lambda: check_target(folder / "file")):
            with pytest.raises(UserError, match=r"cannot write .*file: it is read-only"):
                attempt()
        assert (folder / "file").read_bytes() == OLD
        folder.chmod(0o555)
        for attempt in (lambda: write_whole(folder / "new", NEW), lambda: check_target(folder / "new")):
            with pytest.raises(UserError, match=r"cannot write .*new: Permission denied"):
                attempt()
        folder.chmod(0o755)
        assert [path.name for path in folder.iterdir()] == ["file"]


def test_symbolic_links_stay_and_their_target_is_replaced(tmp_path):
    (tmp_path / "folder").mkdir()
    target = tmp_path / "folder" / "target"
    target.write_bytes(OLD)
    target.chmod(0o600)
    (tmp_path / "near").symlink_to("folder/target")
    (tmp_path / "far").symlink_to(tmp_path / "near")
    (tmp_path / "dangling").symlink_to("folder/new")
    (tmp_path / "loop").symlink_to("loop")
    write_whole(tmp_path / "far", NEW)
    assert (target.read_bytes(), mode(target)) == (NEW, 0o600)
    write_whole(tmp_path / "dangling", NEW)
    assert (tmp_path / "folder" / "new").read_bytes() == NEW
    assert all((tmp_path / name).is_symlink() for name in ("near", "far", "dangling"))
    with pytest.raises(UserError, match="symbolic links"):
        write_whole(tmp_path / "loop", NEW)


def test_of_hard_links_one_name_is_replaced(tmp_path):
    (tmp_path / "one").write_bytes(OLD)
    (tmp_path / "two").hardlink_to(tmp_path / "one")
    write_whole(tmp_path / "one", NEW)
    assert [(tmp_path / name).read_bytes() for name in ("one", "two")] == [NEW, OLD]


def test_a_users_own_files_beside_it_are_left_alone(tmp_path):
    (tmp_path / "elsewhere").write_bytes(OLD)
    for name in ("out.partial", "out.tmp", ".out.partial", "out~"):
        (tmp_path / name).symlink_to("elsewhere")
    before = sorted(path.name for path in tmp_path.iterdir())
    write_whole(tmp_path / "out", NEW)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([*before, "out"])
    assert (tmp_path / "elsewhere").read_bytes() == OLD


def test_fifos_are_written_to(tmp_path):
    os.mkfifo(tmp_path / "fifo")
    content = os.urandom(1 << 20)
    read = []
    reader = threading.Thread(target=lambda: read.append((tmp_path / "fifo").read_bytes()), daemon=True)
    reader.start()
    write_whole(tmp_path / "fifo", content[:10], memoryview(content)[10:])
    assert stat.S_ISFIFO((tmp_path / "fifo").lstat().st_mode)
    reader.join(timeout=20)
    assert read == [content]


def test_devices_are_written_to(tmp_path):
    if os.geteuid() == 0:
        null = tmp_path / "null"
        try:
            os.mknod(null, stat.S_IFCHR | 0o666, os.makedev(1, 3))
            write_whole(null, NEW)
        except PermissionError:
            pytest.skip("root may make no device here")
        assert stat.S_ISCHR(null.lstat().st_mode)
    write_whole(Path("/dev/null"), NEW)
    with pytest.raises(UserError, match="cannot write /dev/full: No space left on device"):
        write_whole(Path("/dev/full"), NEW)
    assert all(stat.S_ISCHR(Path(name).lstat().st_mode) for name in ("/dev/null", "/dev/full"))


@pytest.mark.parametrize("name", ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1", "link"])
def test_standard_output_goes_on(tmp_path, name):
    (tmp_path / "link").symlink_to("/dev/stdout")
    program = "import sys; from pathlib import Path; from cdu_tools.files import check_target, write_whole; print('before')\n"
    program += "write_whole(Path(sys.argv[1]), 'text\\n'); print('after')"
    with (tmp_path / "out").open("wb") as out:
        subprocess.run([sys.executable, "-c", program, name], stdout=out, cwd=tmp_path, check=True)
    assert (tmp_path / "out").read_text() == "before\ntext\nafter\n"
    piped = subprocess.run([sys.executable, "-c", program, name], capture_output=True, cwd=tmp_path, check=True)
    assert piped.stdout == b"before\ntext\nafter\n"


@pytest.mark.parametrize("name", ["n" * 255, "n" * 248, "\udcff\udc80", "a\nb", "-o", "[red]", " ", "ü", ".hidden"])
def test_any_name_that_the_system_takes(tmp_path, name):
    try:
        (tmp_path / name).touch()
    except OSError:
        pytest.skip("this file system does not take the name")
    write_whole(tmp_path / name, f"made by {name}")
    assert (tmp_path / name).read_bytes() == b"made by " + os.fsencode(name)
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_a_look_at_a_target_changes_nothing(tmp_path):
    (tmp_path / "file").write_bytes(OLD)
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "link").symlink_to("new")
    before = {path.name: path.lstat() for path in tmp_path.iterdir()}
    for name in (tmp_path / "file", tmp_path / "new", tmp_path / "link", tmp_path / "fifo", "/dev/null", "/dev/stdout"):
        check_target(Path(name))
    assert {path.name: path.lstat() for path in tmp_path.iterdir()} == before


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("", "Is a directory"),
        ("folder", "Is a directory"),
        ("/", "Is a directory"),
        ("file/x", "Not a directory"),
        ("nowhere/x", "No such file or directory"),
        ("n" * 256, "File name too long"),
        ("x/" * 3000, "File name too long"),
        ("/dev/fd/987", "Bad file descriptor"),
        ("a\0b", "null byte"),
    ],
)
def test_what_cannot_be_written_is_said(tmp_path, monkeypatch, name, reason):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").touch()
    (tmp_path / "folder").mkdir()
    for attempt in (
        lambda: write_whole(Path(name), NEW),
        *([] if name.startswith("/dev") else [lambda: check_target(Path(name))]),
    ):
        with pytest.raises(UserError, match=f"cannot write .*{reason}"):
            attempt()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "folder"]


def test_no_room_leaves_the_old_file(tmp_path):
    (tmp_path / "file").write_bytes(OLD)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
    try:
        with pytest.raises(UserError, match="File too large"):
            write_whole(tmp_path / "file", bytes(2000))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
    assert (tmp_path / "file").read_bytes() == OLD


def test_several_writers_of_one_file(tmp_path):
    target = tmp_path / "file"
    contents = [bytes([number]) * 100_000 for number in range(4)]
    target.write_bytes(contents[0])

    def write(content):
        for _ in range(40):
            write_whole(target, content)

    writers = [threading.Thread(target=write, args=[content]) for content in contents]
    for writer in writers:
        writer.start()
    while any(writer.is_alive() for writer in writers):
        assert target.read_bytes() in contents
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


SLOW = """
import sys, time
from pathlib import Path
from cdu_cli.errors import in_one_sentence
from cdu_tools.files import check_target, write_whole

class Slow(str):
    def encode(self, *arguments, **names):
        print("begun", flush=True)
        time.sleep(60)

with in_one_sentence():
    write_whole(Path(sys.argv[1]), b"half", Slow())
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_leaves_nothing(tmp_path, number):
    (tmp_path / "file").write_bytes(OLD)
    # Under nohup, or in the background of a script, the process would inherit ignored signals.
    handler = "default_int_handler" if number == signal.SIGINT else "SIG_DFL"
    program = f"import signal; signal.signal({number.value}, signal.{handler})\n" + SLOW
    command = [sys.executable, "-c", program, str(tmp_path / "file")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "begun\n"
        partial = next(path for path in tmp_path.iterdir() if path.name != "file")
        assert mode(partial) == 0o600
        process.send_signal(number)
        _, told = process.communicate(timeout=20)
    assert process.returncode == 128 + number
    assert told == f"cdu: error: ended by {number.name}; no output is there in part\n"
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
    assert (tmp_path / "file").read_bytes() == OLD


def test_an_ignored_signal_stays_ignored(tmp_path):
    program = SLOW.replace("time.sleep(60)", "time.sleep(1); return b''").replace("import sys", "import signal, sys", 1)
    program = "import signal; signal.signal(signal.SIGHUP, signal.SIG_IGN)\n" + program
    command = [sys.executable, "-c", program, str(tmp_path / "file")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        process.stdout.readline()
        process.send_signal(signal.SIGHUP)
        process.communicate(timeout=20)
    assert process.returncode == 0
    assert (tmp_path / "file").read_bytes() == b"half"


def test_temporary_names_cannot_be_guessed(tmp_path, monkeypatch):
    names = []
    rename = Path.replace
    monkeypatch.setattr(Path, "replace", lambda self, target: names.append(self.name) or rename(self, target))
    for _ in range(3):
        write_whole(tmp_path / "file", NEW)
    assert len(set(names)) == 3
    assert all(len(name) <= 24 for name in names)
    assert all(sum(one != other for one, other in zip(*pair, strict=True)) > 4 for pair in pairwise(names))


def test_parts_are_written_while_they_are_made(tmp_path):
    """A file has the parts before the one that is made; nobody sees them under its name."""
    seen = []

    def parts():
        for place in range(3):
            seen.append([path.name.startswith(".cdu-") for path in tmp_path.iterdir()])
            yield bytes([place]) * (1 << 20)

    write_parts(tmp_path / "x", parts())
    assert seen == [[True]] * 3
    assert (tmp_path / "x").read_bytes() == b"".join(bytes([place]) * (1 << 20) for place in range(3))


class BoundError(UserError, ValueError):
    """An error of a user's that is a ValueError, too."""


@pytest.mark.parametrize("error", [BoundError("too many"), ZeroDivisionError()])
def test_an_error_between_parts_leaves_nothing_and_stays_what_it_is(tmp_path, error):
    def parts():
        yield NEW
        raise error

    (tmp_path / "old").write_bytes(OLD)
    for name in ("old", "new"):
        with pytest.raises(type(error)) as caught:
            write_parts(tmp_path / name, parts())
        assert caught.value is error
    assert [path.name for path in tmp_path.iterdir()] == ["old"]
    assert (tmp_path / "old").read_bytes() == OLD


def test_a_pipe_gets_nothing_of_parts_that_end_in_an_error():
    read, write = os.pipe()

    def parts():
        yield NEW
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        write_parts(Path(f"/dev/fd/{write}"), parts())
    write_parts(Path(f"/dev/fd/{write}"), iter([OLD]))
    os.close(write)
    with os.fdopen(read, "rb") as file:
        assert file.read() == OLD
