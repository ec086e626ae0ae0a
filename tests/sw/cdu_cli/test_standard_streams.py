"""``-`` as a file's name: standard input and output where a command says so, refused by every other one."""

import io
import json
import os
import pty
import shlex
import subprocess
import sys
import sysconfig
from pathlib import Path

import actcodec
import numpy as np
import pytest
import torch
from cdu_cli import main as entry
from command_line import ENTRY

PROGRAM = Path(sysconfig.get_path("scripts")) / "cdu"
#: Commands whose arguments may be standard streams.
STREAMING = {"compress", "decompress", "export-jpeg", "info"}
VALUES = np.random.default_rng(0).standard_normal((2, 3, 9, 17)).astype(np.float32)


def npy(*arrays):
    file = io.BytesIO()
    for array in arrays:
        np.save(file, array)
    return file.getvalue()


STREAM = actcodec.codec("jpeg-act").compress(torch.from_numpy(VALUES)).to_bytes()
RESTORED = npy(actcodec.decompress(actcodec.from_bytes(STREAM)).numpy())


def cdu(folder, words, **settings):
    return subprocess.run([PROGRAM, *words.split()], cwd=folder, capture_output=True, timeout=300, check=False, **settings)


@pytest.mark.parametrize(
    ("words", "given", "made"), [("compress - -", npy(VALUES), STREAM), ("decompress - -", STREAM, RESTORED)]
)
def test_pipes_carry_the_bytes_of_files_and_nothing_else(tmp_path, words, given, made):
    done = cdu(tmp_path, f"{words} --json report.json", input=given)
    assert (done.returncode, done.stdout) == (0, made), done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["report.json"]
    assert json.loads((tmp_path / "report.json").read_text())["bytes_compressed"] == len(STREAM)


def test_commands_are_joined_by_a_pipe(tmp_path):
    (tmp_path / "in.npy").write_bytes(npy(VALUES))
    line = f"{shlex.quote(str(PROGRAM))} compress in.npy - | {shlex.quote(str(PROGRAM))} decompress - - > out.npy"
    subprocess.run(["bash", "-o", "pipefail", "-c", line], cwd=tmp_path, check=True, capture_output=True, timeout=300)
    assert (tmp_path / "out.npy").read_bytes() == RESTORED
    assert {path.name for path in tmp_path.iterdir()} == {"in.npy", "out.npy"}


def test_standard_input_is_read_from_where_it_stands(tmp_path):
    path = tmp_path / "in"
    path.write_bytes(b"head" + STREAM)
    with path.open("rb", buffering=0) as file:
        file.read(4)
        done = cdu(tmp_path, "decompress - -", stdin=file)
    assert done.stdout == RESTORED, done.stderr


def test_an_image_goes_to_standard_output(tmp_path):
    done = cdu(tmp_path, "export-jpeg - -", input=STREAM)
    assert done.stdout.startswith(b"\xff\xd8"), done.stderr
    assert done.stdout.endswith(b"\xff\xd9")


@pytest.mark.parametrize(
    ("words", "given", "said"),
    [
        ("compress - -", npy(VALUES, VALUES), "/dev/stdin has another array behind the end of its array"),
        ("compress - -", npy(VALUES) + b"\0", "/dev/stdin has other bytes behind the end of its array"),
        ("compress - -", npy(VALUES)[:-1], "cannot read /dev/stdin: it is no whole .npy file"),
        ("compress - -", b"", "cannot read /dev/stdin: it is no .npy, .npz, .safetensors or torch (.pt) file"),
        ("export-jpeg - -", npy(VALUES, VALUES), "/dev/stdin has another array"),
        ("decompress - -", STREAM + b"\0", "/dev/stdin: "),
        ("decompress - -", STREAM + STREAM, "/dev/stdin: "),
        ("decompress - -", STREAM[:-1], "/dev/stdin: "),
        ("compress - - --json /dev/stdout", npy(VALUES), "/dev/stdout is written twice"),
        ("compress - - --json -", npy(VALUES), "- stands for standard input and output only where"),
    ],
)
def test_what_is_refused_writes_nothing(tmp_path, words, given, said):
    done = cdu(tmp_path, words, input=given)
    assert (done.returncode, done.stdout) == (2, b"")
    text = done.stderr.decode()
    assert text.startswith(f"cdu: error: {said}")
    assert text.count("\n") == 1
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("words", "stream"), [("compress in.npy -", "stdout"), ("compress - out.cdu", "stdin"), ("decompress in.cdu -", "stdout")]
)
def test_a_terminal_gets_no_bytes(tmp_path, words, stream):
    (tmp_path / "in.npy").write_bytes(npy(VALUES))
    (tmp_path / "in.cdu").write_bytes(STREAM)
    master, slave = pty.openpty()
    streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, stream: slave}
    done = subprocess.run([PROGRAM, *words.split()], cwd=tmp_path, stderr=subprocess.PIPE, **streams, timeout=300, check=False)
    os.close(slave)
    os.close(master)
    assert done.returncode == 2
    assert done.stderr.decode().startswith(f"cdu: error: /dev/{stream} (-) is a terminal")
    assert not (tmp_path / "out.cdu").exists()


def _commands(command, *words):
    """All commands with the words that call them."""
    if hasattr(command, "commands"):
        for word, inner in command.commands.items():
            yield from _commands(inner, *words, word)
    else:
        yield command, words


def _given(parameter, value):
    return [parameter.opts[0], value] if parameter.param_type_name == "option" else [value]


def _files():
    """Each command line in which one parameter of a file or folder is ``-``, and the others that it must have are given."""
    for command, words in _commands(ENTRY):
        for parameter in command.params:
            if "Path" not in str(parameter.type_descriptor.annotation):
                continue
            if words[0] in STREAMING and parameter.param_type_name == "argument":
                continue
            named = [one for one in command.params if one is parameter or one.required]
            needed = [_given(one, "-" if one is parameter else "1") for one in named]
            yield [*words, *(word for pair in needed for word in pair)]


FILES = list(_files())


def test_the_parameters_are_found():
    assert len(FILES) > 60
    assert all(words in FILES for words in (["list", "--json", "-"], ["check", "-"], ["summary", "-"]))


@pytest.mark.parametrize("words", FILES, ids=" ".join)
def test_every_other_file_is_not_called_so(words, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(entry, "app", ENTRY)
    monkeypatch.setattr(sys, "argv", ["cdu", *words])
    with pytest.raises(SystemExit) as ended:
        entry.main()
    assert ended.value.code == 2
    assert capsys.readouterr().err.startswith("cdu: error: - stands for standard input and output only where --help says so: ")
    assert not list(tmp_path.iterdir())
