"""Inputs of commands that are no ordinary files, or that announce more than they have."""

import os
import threading

import actcodec
import numpy as np
import pytest
import torch
from cdu_cli import input_files
from cdu_spec.bitstream import Header
from cdu_spec.modes import Dtype, Mode
from cdu_tools.errors import UserError
from click.testing import CliRunner
from command_line import ENTRY

COMMANDS = ("compress", "decompress", "export-jpeg")


@pytest.fixture
def run():
    return lambda *arguments: CliRunner().invoke(ENTRY, [str(one) for one in arguments], catch_exceptions=False)


@pytest.fixture
def fifo(tmp_path):
    """Makes a FIFO and writes into it: some bytes, and for ever others after them."""
    threads = []

    def make(content, for_ever=b""):
        path = tmp_path / f"fifo{len(threads)}"
        os.mkfifo(path)

        def write():
            try:
                with path.open("wb") as file:
                    file.write(content)
                    while for_ever:
                        file.write(for_ever * 1000)
            except BrokenPipeError:
                pass

        threads.append(threading.Thread(target=write, daemon=True))
        threads[-1].start()
        return path

    yield make
    for thread in threads:
        thread.join(timeout=10)
        assert not thread.is_alive()


@pytest.fixture
def array(tmp_path):
    values = np.random.default_rng(0).standard_normal((1, 2, 16, 16)).astype(np.float32)
    np.save(tmp_path / "x.npy", values)
    return (tmp_path / "x.npy").read_bytes()


@pytest.fixture
def stream(array):
    values = np.random.default_rng(0).standard_normal((1, 2, 16, 16)).astype(np.float32)
    return actcodec.codec("jpeg-act").compress(torch.from_numpy(values)).to_bytes()


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("source", ["/dev/zero", "/dev/urandom", "/dev/null"])
def test_devices_without_an_end(run, tmp_path, command, source):
    with pytest.raises(UserError, match=f"{source}: "):
        run(command, source, tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_fifos_are_read_as_files_are(run, tmp_path, fifo, array, stream):
    (tmp_path / "x.cdu").write_bytes(stream)
    for command, content, file in (
        ("compress", array, "x.npy"),
        ("export-jpeg", array, "x.npy"),
        ("export-jpeg", stream, "x.cdu"),
        ("decompress", stream, "x.cdu"),
    ):
        run(command, tmp_path / file, tmp_path / "expected")
        run(command, fifo(content), tmp_path / "found")
        assert (tmp_path / "found").read_bytes() == (tmp_path / "expected").read_bytes()


@pytest.mark.parametrize("command", ["decompress", "export-jpeg"])
def test_a_stream_that_does_not_end(run, tmp_path, fifo, stream, command):
    with pytest.raises(UserError, match=rf"fifo0: .* stream: \d+ bytes, but its header says {len(stream)}$"):
        run(command, fifo(stream, b"\0"), tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("command", ["decompress", "export-jpeg"])
def test_streams_that_announce_more_than_is_allowed(run, tmp_path, fifo, stream, command):
    huge = Header(Mode.BRC, Dtype.FP32, (1 << 31, 1 << 31), 1 << 59).pack()
    with pytest.raises(UserError, match=r"fifo0: its tensor of shape .* has 18446744073709551616 bytes: \d+ are allowed"):
        run(command, fifo(huge, b"\0"), tmp_path / "out")
    (tmp_path / "x.cdu").write_bytes(stream)
    with pytest.raises(UserError, match=r"x.cdu: its tensor of shape .* has 2048 bytes: 2047 are allowed"):
        run(command, tmp_path / "x.cdu", tmp_path / "out", "--max-bytes", 2047)
    assert not (tmp_path / "out").exists()
    assert run(command, tmp_path / "x.cdu", tmp_path / "out", "--max-bytes", 2048).exit_code == 0


def npy(shape, content=b"", version=1, length=None):
    head = repr({"descr": "<f4", "fortran_order": False, "shape": shape}).encode() + b"\n"
    size = (len(head) if length is None else length).to_bytes(2 if version == 1 else 4, "little")
    return b"\x93NUMPY" + bytes([version, 0]) + size + head + content


@pytest.mark.parametrize("command", ["compress", "export-jpeg"])
@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (
            npy((1 << 20, 1 << 30)),
            r"holds an array of 4503599627370496 bytes: \d+ are allowed, a greater --max-bytes",
        ),
        (npy((8, -8)), "no whole .npy file"),
        (npy((0, -8)), "no whole .npy file"),
        (npy((1 << 63, 0)), "no whole .npy file"),
        (npy((1 << 40, 0, 1 << 40)), "no whole .npy file"),
        (npy((0,) * 65), "no whole .npy file"),
        (npy((8, 8), version=3, length=4_000_000_000), "no whole .npy file"),
        (npy((8, 8), version=2, length=4_000_000_000), "no whole .npy file"),
        (npy((8, 8), version=9), "no whole .npy file"),
    ],
)
def test_arrays_that_announce_what_is_not_there(run, tmp_path, fifo, command, content, reason):
    (tmp_path / "x.npy").write_bytes(content)
    for source in (tmp_path / "x.npy", fifo(content, b"\0")):
        with pytest.raises(UserError, match=reason) as caught:
            run(command, source, tmp_path / "out")
        assert "\n" not in str(caught.value)
    assert not (tmp_path / "out").exists()


def test_an_array_that_is_cut_off_takes_no_memory(run, tmp_path, fifo, monkeypatch):
    content = npy((1 << 20, 32), bytes(100))
    (tmp_path / "x.npy").write_bytes(content)
    monkeypatch.setattr(np, "empty", lambda *arguments: pytest.fail("room was made"))
    with pytest.raises(UserError, match=r"no whole \.npy file"):
        run("compress", tmp_path / "x.npy", tmp_path / "out")
    monkeypatch.undo()
    with pytest.raises(UserError, match=r"no whole \.npy file"):
        run("compress", fifo(content), tmp_path / "out")


def test_arrays_beyond_the_limit(run, tmp_path, array):
    for command in ("compress", "export-jpeg"):
        with pytest.raises(UserError, match="holds an array of 2048 bytes: 2047 are allowed"):
            run(command, tmp_path / "x.npy", tmp_path / "out", "--max-bytes", 2047)
        assert not (tmp_path / "out").exists()
        assert run(command, tmp_path / "x.npy", tmp_path / "out", "--max-bytes", 2048).exit_code == 0
        (tmp_path / "out").unlink()


@pytest.mark.parametrize("version", [1, 2, 3])
def test_all_versions_of_npy_are_read(run, tmp_path, array, version):
    values = np.load(tmp_path / "x.npy")
    (tmp_path / "y.npy").write_bytes(npy(values.shape, values.tobytes(), version))
    assert np.array_equal(np.load(tmp_path / "y.npy", allow_pickle=False), values)
    for name in ("x", "y"):
        assert run("compress", tmp_path / f"{name}.npy", tmp_path / f"{name}.cdu").exit_code == 0
    assert (tmp_path / "x.cdu").read_bytes() == (tmp_path / "y.cdu").read_bytes()


@pytest.mark.parametrize("dtype", ["<f4", ">f4", "<f2", ">f2"])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("shape", [(), (1,), (3, 5), (2, 3, 4), (0, 3)])
def test_arrays_are_read_as_numpy_does(tmp_path, dtype, order, shape):
    values = np.asarray(np.random.default_rng(0).standard_normal(shape), dtype=dtype, order=order)
    np.save(tmp_path / "x.npy", values)
    found = input_files.read_either(tmp_path / "x.npy", None)
    assert np.array_equal(found, values)
    assert found.shape == values.shape
    assert found.dtype == values.dtype.newbyteorder("=")
    assert found.flags.c_contiguous
