"""Files that restored tensors are written to."""

from pathlib import Path

import numpy as np
import pytest
import torch
from cdu_cli.restored_files import check_format, write_tensors
from cdu_tools.errors import UserError
from cdu_tools.mapped import MappedFiles
from safetensors import safe_open
from safetensors.torch import load_file, save

TENSORS = {
    "file": torch.randn(2, 3, generator=torch.Generator().manual_seed(0)),
    "a/b": torch.arange(4, dtype=torch.int64),
    "half": torch.ones(2, 2, dtype=torch.float16).t(),
    "scalar": torch.tensor(3.0),
    "none": torch.zeros(0, 3),
}
BRAIN = {"x": torch.randn(9, generator=torch.Generator().manual_seed(0)).bfloat16()}


def equal(found, expected):
    assert sorted(found) == sorted(expected)
    for name, tensor in expected.items():
        assert found[name].dtype == tensor.dtype
        assert torch.equal(found[name], tensor)


@pytest.mark.parametrize("name", ["x.npz", "x.NPZ", "x", "x.cdu"])
def test_npz(tmp_path, name):
    write_tensors(tmp_path / name, TENSORS, container=True, files=MappedFiles())
    with np.load(tmp_path / name) as found:
        equal({key: torch.from_numpy(found[key]) for key in found}, TENSORS)
    before = (tmp_path / name).read_bytes()
    write_tensors(tmp_path / name, TENSORS, container=True, files=MappedFiles())
    assert (tmp_path / name).read_bytes() == before


@pytest.mark.parametrize("name", ["x.npz", "x"])
def test_names_that_no_npz_holds(tmp_path, name):
    """Check before a value is asked for, and that the longest name comes back, in UTF-8 too."""
    for word, said in (
        ("a\0b", r"called 'a\\x00b': names in .npz end at"),
        ("é" * 32766, "a name of 65532 bytes: .npz takes 65531"),
    ):
        with pytest.raises(UserError, match=said):
            write_tensors(tmp_path / name, {"ok": None, word: None}, container=True, files=MappedFiles())
    assert not list(tmp_path.iterdir())
    longest = {"é" + "x" * 65529: TENSORS["scalar"]}
    write_tensors(tmp_path / name, longest, container=True, files=MappedFiles())
    with np.load(tmp_path / name) as found:
        equal({key: torch.from_numpy(found[key]) for key in found}, longest)


@pytest.mark.parametrize("name", ["x.safetensors", "x.pt"])
def test_other_files_hold_every_name(tmp_path, name):
    one = {"a\0b": TENSORS["file"], "x" * 65535: TENSORS["scalar"]}
    write_tensors(tmp_path / name, one, container=True, files=MappedFiles())
    equal(load_file(tmp_path / name) if name == "x.safetensors" else torch.load(tmp_path / name, weights_only=True), one)


def test_safetensors(tmp_path):
    write_tensors(tmp_path / "x.safetensors", TENSORS | BRAIN, container=True, files=MappedFiles())
    equal(load_file(tmp_path / "x.safetensors"), TENSORS | BRAIN)
    with safe_open(tmp_path / "x.safetensors", "pt") as file:
        assert file.metadata() == {"format": "pt"}


@pytest.mark.parametrize("names", [["scalar"], ["none"], [*TENSORS, *BRAIN], [*BRAIN, *reversed(TENSORS)]])
def test_safetensors_have_the_bytes_of_the_library(tmp_path, names):
    one = {name: (TENSORS | BRAIN)[name].contiguous() for name in names} | {'ü "quoted"': torch.arange(3, dtype=torch.uint8)}
    write_tensors(tmp_path / "x.safetensors", one, container=True, files=MappedFiles())
    assert (tmp_path / "x.safetensors").read_bytes() == save(one, {"format": "pt"})


@pytest.mark.parametrize("ending", ["pt", "pth"])
def test_torch(tmp_path, ending):
    write_tensors(tmp_path / f"x.{ending}", TENSORS | BRAIN, container=True, files=MappedFiles())
    equal(torch.load(tmp_path / f"x.{ending}", weights_only=True), TENSORS | BRAIN)


def test_one_tensor_without_a_name(tmp_path):
    one = {"": TENSORS["file"]}
    for name in ("x.npy", "x", "x.npz", "x.safetensors", "x.pt"):
        write_tensors(tmp_path / name, one, container=False, files=MappedFiles())
    expected = TENSORS["file"]
    for name in ("x.npy", "x"):
        assert np.array_equal(np.load(tmp_path / name), expected.numpy())
    assert np.array_equal(np.load(tmp_path / "x.npz")["tensor"], expected.numpy())
    equal(load_file(tmp_path / "x.safetensors"), {"tensor": expected})
    assert torch.equal(torch.load(tmp_path / "x.pt", weights_only=True), expected)


@pytest.mark.parametrize(("name", "container"), [("x.npy", False), ("x.npz", False), ("x.npz", True)])
def test_numpy_has_no_bfloat16(tmp_path, capsys, name, container):
    write_tensors(tmp_path / name, BRAIN if container else {"": BRAIN["x"]}, container, MappedFiles())
    assert "note: numpy has no bfloat16: " in capsys.readouterr().err
    found = np.load(tmp_path / name)
    found = found if name == "x.npy" else found["x" if container else "tensor"]
    assert found.dtype == np.float32
    assert np.array_equal(found, BRAIN["x"].float().numpy())


def test_an_npy_file_has_no_room_for_a_container():
    with pytest.raises(UserError, match=r"x\.npy has room for one array: use \.npz, \.safetensors or \.pt"):
        check_format(Path("x.npy"), container=True)


def test_the_name_of_the_metadata_is_refused(tmp_path):
    tensors = {"__metadata__": TENSORS["file"]}
    with pytest.raises(UserError, match=r"x\.safetensors cannot hold a tensor called __metadata__, .*: use \.npz or \.pt"):
        write_tensors(tmp_path / "x.safetensors", tensors, container=True, files=MappedFiles())
    assert not list(tmp_path.iterdir())
    write_tensors(tmp_path / "x.pt", tensors, container=True, files=MappedFiles())
    equal(torch.load(tmp_path / "x.pt", weights_only=True), tensors)
