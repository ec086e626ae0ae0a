"""Files that are larger than the memory that compressing and restoring them takes."""

import subprocess
import sys

import actcodec
import numpy as np
import pytest
import torch
import typer
from actcodec.backends import streamed_backend
from actcodec.codecs import container
from cdu_cli import compress, input_files
from cdu_tools.errors import UserError
from safetensors.torch import save_file
from typer.testing import CliRunner

#: MiB of the tensors of a file, and of the memory above that of the interpreter with its imports.
TENSORS, MEMORY = 320, 80
PROGRAM = """
import re, sys
from pathlib import Path
from cdu_cli.main import main

codec, ending = sys.argv[1:]

def cdu(*words):
    # The highest resident size of a process begins with that of the one that started it, unless it is reset.
    Path("/proc/self/clear_refs").write_text("5")
    sys.argv = ["cdu", *words]
    try:
        main()
    except SystemExit as end:
        assert not end.code
    return int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) >> 10

cdu("compress", f"small.{ending}", "x.cdu", "--codec", codec)
before = cdu("decompress", "x.cdu", f"back.{ending}")
compressed = cdu("compress", f"large.{ending}", "x.cdu", "--codec", codec)
shown = cdu("info", "x.cdu")
restored = cdu("decompress", "x.cdu", f"back.{ending}")
print(compressed - before, shown - before, restored - before, file=sys.stderr)
"""


def save(path, values, tensors):
    """Write values as a file of one array, or of so many tensors of equal size."""
    parts = {f"layer{number}": torch.from_numpy(part) for number, part in enumerate(np.split(values, tensors))}
    match path.suffix:
        case ".npy":
            np.save(path, values)
        case ".npz":
            np.savez(path, values)
        case ".safetensors":
            save_file(parts, path)
        case _:
            torch.save(parts, path)


@pytest.mark.parametrize(
    ("codec", "ending", "tensors"),
    [
        ("jpeg-act", "npy", 1),
        pytest.param("autoquantz", "npy", 1, marks=pytest.mark.campaign),
        pytest.param("sfpr", "npz", 1, marks=pytest.mark.campaign),
        ("sfpr", "safetensors", 1),
        pytest.param("sfpr", "safetensors", 20, marks=pytest.mark.campaign),
        pytest.param("sfpr", "pt", 20, marks=pytest.mark.campaign),
    ],
)
def test_the_memory_is_bounded(tmp_path, codec, ending, tensors):
    shape = (TENSORS << 4, 4, 64, 64)
    part = np.random.default_rng(0).standard_normal((4, *shape[1:])).astype(np.float32)
    save(tmp_path / f"small.{ending}", part, 1)
    save(tmp_path / f"large.{ending}", np.resize(part, shape), tensors)
    command = [sys.executable, "-c", PROGRAM, codec, ending]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True, timeout=500)
    assert max(map(int, done.stderr.splitlines()[-1].split())) < MEMORY < TENSORS
    assert abs((tmp_path / f"back.{ending}").stat().st_size - (TENSORS << 20)) < 1 << 16


@pytest.fixture
def run(monkeypatch):
    """The commands, to which every file is large."""
    for module in (input_files, streamed_backend):
        monkeypatch.setattr(module, "LARGE_BYTES", 1)
    monkeypatch.setattr(input_files, "PIECE_BYTES", 1 << 12)
    monkeypatch.setattr(streamed_backend, "PIECE_VALUES", 1 << 10)
    app = typer.Typer()
    compress.register(app)

    def call(*words):
        result = CliRunner().invoke(app, [str(word) for word in words])
        if result.exception is not None:
            raise result.exception
        return result

    return call


@pytest.mark.parametrize("back", ["npy", "npz", "pt", "safetensors"])
@pytest.mark.parametrize("form", ["plain", "big-endian", "columns first", "npz"])
def test_large_files_have_the_streams_of_small_ones(run, tmp_path, form, back):
    values = np.random.default_rng(0).standard_normal((2, 3, 20, 30)).astype(np.float32)
    stored = {"big-endian": values.astype(">f4"), "columns first": np.asfortranarray(values)}.get(form, values)
    source, packed, target = tmp_path / f"x.{'npz' if form == 'npz' else 'npy'}", tmp_path / "x.cdu", tmp_path / f"y.{back}"
    (np.savez if form == "npz" else np.save)(source, stored)
    run("compress", source, packed, "--codec", "jpeg-act", "--report")
    expected = actcodec.codec("jpeg-act").compress(torch.from_numpy(values))
    stream = packed.read_bytes()
    assert (container.parse(stream)["arr_0"].to_bytes() if form == "npz" else stream) == expected.to_bytes()
    if not (form == "npz" and back == "npy"):
        run("decompress", packed, target)
        (found,) = (load() for load in compress.read_tensors([target], None).loads.values())
        assert torch.equal(found, expected.decompress())


def test_a_large_file_is_cast_and_its_option_found(run, tmp_path):
    values = np.random.default_rng(0).standard_normal((2, 3, 20, 30))
    np.save(tmp_path / "x.npy", values)
    run("compress", tmp_path / "x.npy", tmp_path / "x.cdu", "--cast", "float32", "--codec", "autoquantz", "--max-error", "0.1")
    run("decompress", tmp_path / "x.cdu", tmp_path / "y.npy")
    assert 0 < np.abs(np.load(tmp_path / "y.npy") - values).max() <= 0.1


def test_no_file_is_left_beside_the_output(run, tmp_path):
    np.save(tmp_path / "x.npy", np.full((1, 1, 64, 64), np.nan, np.float32))
    with pytest.raises(UserError, match="4096 of 4096 values are NaN"):
        run("compress", tmp_path / "x.npy", tmp_path / "x.cdu")
    assert [path.name for path in tmp_path.iterdir()] == ["x.npy"]
