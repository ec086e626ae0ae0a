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
from typer.testing import CliRunner

#: MiB of the array, and of the memory above that of the interpreter with its imports.
ARRAY, MEMORY = 320, 160
PROGRAM = """
import resource, sys
import numpy as np
from cdu_cli.main import main

codec, count = sys.argv[1], int(sys.argv[2]) << 18

def cdu(*words):
    sys.argv = ["cdu", *words]
    try:
        main()
    except SystemExit as end:
        assert not end.code
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10

part = np.random.default_rng(0).standard_normal(1 << 16).astype(np.float32)
for name, size in (("small.npy", 1 << 16), ("large.npy", count)):
    with open(name, "wb") as file:
        about = {"descr": "<f4", "fortran_order": False, "shape": (size // 2**14, 4, 64, 64)}
        np.lib.format.write_array_header_1_0(file, about)
        for _ in range(size // len(part)):
            file.write(part.data)
cdu("compress", "small.npy", "x.cdu", "--codec", codec)
before = cdu("decompress", "x.cdu", "back.npy")
compressed = cdu("compress", "large.npy", "x.cdu", "--codec", codec)
restored = cdu("decompress", "x.cdu", "back.npy")
print(compressed - before, restored - before)
"""


def test_the_memory_is_bounded(tmp_path):
    command = [sys.executable, "-c", PROGRAM, "jpeg-act", str(ARRAY)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True, timeout=500)
    assert max(map(int, done.stdout.split())) < MEMORY < ARRAY
    assert (tmp_path / "back.npy").stat().st_size == (tmp_path / "large.npy").stat().st_size


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
