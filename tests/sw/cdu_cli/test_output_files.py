"""Outputs that cannot be written: every command says so in one sentence before it does anything."""

import os
from pathlib import Path

import click
import pytest
import typer
from cdu_tools.errors import UserError
from click.testing import CliRunner
from command_line import ENTRY

COMMANDS = ENTRY.commands


def given(word):
    """Commands that have an option of this name."""
    return sorted(name for name, command in COMMANDS.items() if any(word in option.opts for option in command.params))


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Runs a command in a folder of its own with a file and a folder in it; nothing may be left there."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").touch()
    (tmp_path / "folder").mkdir()
    yield lambda *arguments: CliRunner().invoke(ENTRY, list(arguments), catch_exceptions=False)
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["file", "folder"]


def test_what_there_is():
    assert len(given("--json")) > 10
    assert len(given("-o")) > 8
    files = {(name, option.opts[0]) for name, command in COMMANDS.items() for option in command.params if is_file(option)}
    assert {(name, "--json") for name in given("--json")} | {
        ("dqt", "--record"),
        ("formal", "--table"),
        ("coverage", "--table"),
        ("mutate", "--table"),
    } == files


def is_file(option):
    """Return whether an option names a file that is written."""
    return isinstance(option, click.Option | typer.core.TyperOption) and (option.help or "").startswith("Also ")


@pytest.mark.parametrize("target", [".", "/", "", "file/x", "nowhere/x", "n" * 256, "/dev/null/x", "/proc/self/nothing/x"])
@pytest.mark.parametrize("option", ["--json", "--record", "--table"])
def test_files(run, option, target):
    for command in given(option):
        with pytest.raises(UserError, match=r"^cannot (write|read) ") as caught:
            run(command, option, target, *others(command))
        assert "\n" not in str(caught.value)


def others(command, output=("-o", "out")):
    """Return the other arguments that a command needs before it looks at its outputs."""
    given = COMMANDS[command].params
    arguments = [f"absent{place}" for place, one in enumerate(given) if one.param_type_name == "argument" and one.required]
    return (*arguments, *(output if any("-o" in one.opts and one.required for one in given) else ()))


@pytest.mark.parametrize("target", ["file", "file/x", "n" * 256, "/dev/null", "/dev/full/x", "folder/../file"])
def test_directories(run, target):
    for command in given("-o"):
        with pytest.raises(UserError, match=r"^cannot make the output directory ") as caught:
            run(command, "-o", target, *others(command, ()))
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize("command", ["compress", "decompress", "export-jpeg"])
@pytest.mark.parametrize("target", [".", "", "file/x", "nowhere/x", "n" * 256])
def test_arguments(run, command, target):
    with pytest.raises(UserError, match=r"^cannot write "):
        run(command, "absent", target)


def test_devices_and_pipes_are_targets(run):
    # The pipe first: what replaces it is not let at the machine's devices.
    read, write = os.pipe()
    try:
        assert run("list", "--json", f"/dev/fd/{write}").exit_code == 0
        assert os.read(read, 1) == b"{"
    finally:
        os.close(read)
        os.close(write)
    assert run("list", "--json", "/dev/null").exit_code == 0
    with pytest.raises(UserError, match="cannot write /dev/full: No space left on device"):
        run("list", "--json", "/dev/full")
    assert Path("/dev/null").is_char_device()
