"""Wrong invocations of every command: exit code 2, one sentence, soon, and nothing written."""

import re
import shlex
import signal
import subprocess
import sys
import sysconfig
import tomllib
from pathlib import Path

import pytest
from cdu_cli import main as entry
from command_line import ENTRY
from files_for_tests import make_files

TABLE = tomllib.loads(Path(__file__).with_name("wrong_invocations.toml").read_text(encoding="utf-8"))
#: Seconds of the processor that any of them may take, and seconds by the clock, of which a busy machine needs more.
LIMIT, PATIENCE = 10, 120
#: Of every so many invocations one is also made as a user makes it, in a process of its own.
SAMPLED = 250


def _rows():
    for command, group in TABLE.items():
        for usual, rows in ((group.get("usual", ""), group.get("wrong", [])), ("", group.get("alone", []))):
            for given, said in rows:
                words = f"{command} {given} {usual}".format(digits="9" * 5000, long="x" * 300)
                yield pytest.param(shlex.split(words), said, id=f"{command} {given} {usual}".strip())


ROWS = list(_rows())


def _state(folder):
    """Return a state that differs if anything in a folder was made, removed, written or replaced."""
    about = {path: path.lstat() for path in folder.rglob("*")}
    return {(str(path), one.st_mode, one.st_ino, one.st_size, one.st_mtime_ns) for path, one in about.items()}


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    make_files(folder)
    return folder


@pytest.fixture
def unchanged(files, monkeypatch):
    """The folder of files as the present one; fails when it, or the cache, is another one afterwards."""
    monkeypatch.chdir(files)
    monkeypatch.setenv("CDU_CACHE_DIR", str(files / "cache"))
    monkeypatch.delenv("CDU_DATA_DIR", raising=False)
    before = _state(files)
    yield
    changed = {name for name, *_ in _state(files) ^ before}
    assert not changed


@pytest.fixture
def soon():
    """Ends a test that does not answer in time."""

    def late(*_):
        pytest.fail(f"no answer in {LIMIT} s")

    timers = {signal.ITIMER_PROF: (signal.SIGPROF, LIMIT), signal.ITIMER_REAL: (signal.SIGALRM, PATIENCE)}
    before = {number: signal.signal(number, late) for number, _ in timers.values()}
    for timer, (_, seconds) in timers.items():
        signal.setitimer(timer, seconds)
    yield
    for timer in timers:
        signal.setitimer(timer, 0)
    for number, handler in before.items():
        signal.signal(number, handler)


#: Forms of Python that a message must not have: tuples and lists of texts, numbers of errors, codecs, objects, paths, classes.
PYTHON = re.compile(
    r"""\(\S+,\)|[(\[]'[^']*'[\],]|\[Errno|codec can't|[(<]?\bobject at 0x|\bPath\(|<(class|frozen|function)|\bNone\b|"""
    r"""Traceback|No module named|valid integer|unable to parse|='\w+'|="\w+"|\btorch\.[a-z]*\d|\b[A-Z]\w+Error\b"""
)
#: The command that runs a program of the user, whose error has a class.
OF_A_PROGRAM = re.compile(r"does not run: SyntaxError: ")


def _is_one_sentence(text, said):
    form = PYTHON.search(OF_A_PROGRAM.sub("", text))
    assert not form, f"{form[0]!r} in {text}"
    assert said in text
    assert re.fullmatch(r"cdu: error: [^\n]+\n", text), text
    assert len(text) < 1000


@pytest.mark.parametrize(("words", "said"), ROWS)
def test_is_refused_in_one_sentence(words, said, unchanged, soon, monkeypatch, capfd):
    monkeypatch.setattr(sys, "argv", ["cdu", *words])
    monkeypatch.setattr(entry, "app", ENTRY)
    with pytest.raises(SystemExit) as ended:
        entry.main()
    assert ended.value.code == 2
    _is_one_sentence(capfd.readouterr().err, said)


@pytest.mark.parametrize(("words", "said"), ROWS[::SAMPLED])
def test_a_process_of_its_own_says_the_same(words, said, unchanged):
    program = Path(sysconfig.get_path("scripts")) / "cdu"
    done = subprocess.run([program, *words], capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode == 2
    _is_one_sentence(done.stderr, said)


def _commands(command, name=""):
    """Names of all commands with their parameters."""
    if hasattr(command, "commands"):
        for word, inner in command.commands.items():
            yield from _commands(inner, f"{name} {word}".strip())
    else:
        yield name, [parameter for parameter in command.params if parameter.name != "help"]


def test_the_table_has_every_command_and_every_option():
    commands = dict(_commands(ENTRY))
    assert commands.keys() == TABLE.keys() - {""}
    assert len(ROWS) >= 200
    for name, parameters in commands.items():
        group = TABLE[name]
        words = {word for row in (*group.get("wrong", []), *group.get("alone", [])) for word in shlex.split(row[0])}
        words |= set(shlex.split(group.get("usual", "")))
        for parameter in parameters:
            if parameter.param_type_name == "option":
                assert words & {*parameter.opts, *parameter.secondary_opts}, f"no row of cdu {name} has {parameter.opts}"
            else:
                assert words, f"no row of cdu {name} has an argument"
