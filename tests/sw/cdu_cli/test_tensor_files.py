"""Reading tensors from files and folders."""

import io
import pickle
import struct
import sys
import zipfile

import numpy as np
import pytest
import torch
from cdu_cli.tensor_files import read_tensors
from cdu_tools.errors import UserError
from cdu_tools.mapped import MappedFiles
from safetensors.torch import save_file

A = torch.randn(2, 3, 8, 8, generator=torch.Generator().manual_seed(0))
B = torch.arange(6).reshape(2, 3)
HALF = A.bfloat16()


def load(*paths, limit=None):
    tensors = read_tensors(paths, limit)
    return {name: load() for name, load in tensors.loads.items()}, tensors.named


def equal(found, expected):
    assert list(found) == list(expected)
    for name, tensor in expected.items():
        assert found[name].dtype == tensor.dtype
        assert torch.equal(found[name], tensor)


def test_npy(tmp_path):
    np.save(tmp_path / "x.npy", A.numpy())
    equal(load(tmp_path / "x.npy")[0], {"": A})
    assert not load(tmp_path / "x.npy")[1]


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_npz(tmp_path, save):
    save(tmp_path / "x.npz", **{"a/b": A.numpy(), "n": B.numpy(), "scalar": np.float32(2)})
    found, named = load(tmp_path / "x.npz")
    equal(found, {"a/b": A, "n": B, "scalar": torch.tensor(2.0)})
    assert named


def test_safetensors(tmp_path, capsys):
    save_file({"w": HALF, "n": B}, tmp_path / "x.safetensors", {"format": "pt", "author": "me"})
    found, named = load(tmp_path / "x.safetensors")
    equal(found, {"n": B, "w": HALF})
    assert named
    assert capsys.readouterr().err == f"note: metadata of {tmp_path}/x.safetensors are left out: author\n"


@pytest.mark.parametrize(
    ("content", "names", "left_out"),
    [
        ({"a": A, "b": B}, ["a", "b"], None),
        ({"model": {"a.w": A}, "list": [B, {"c": A}], "epoch": 3}, ["model.a.w", "list.0", "list.1.c"], "epoch"),
        ([A, B], ["0", "1"], None),
        ({"": {"a": A}, "a": B}, [".a", "a"], None),
        (torch.nn.Conv2d(1, 2, 3).state_dict(), ["weight", "bias"], None),
    ],
    ids=["dict", "nested", "list", "empty key", "state_dict"],
)
def test_torch(tmp_path, capsys, content, names, left_out):
    torch.save(content, tmp_path / "x.pt")
    found, named = load(tmp_path / "x.pt")
    assert (list(found), named) == (names, True)
    said = f"note: values that are no tensors of {tmp_path}/x.pt are left out: {left_out}\n" if left_out else ""
    assert capsys.readouterr().err == said


def test_a_torch_file_of_one_tensor_has_no_name(tmp_path):
    torch.save(torch.nn.Parameter(HALF), tmp_path / "x.pt")
    found, named = load(tmp_path / "x.pt")
    equal(found, {"": HALF})
    assert not named
    assert not found[""].requires_grad


def test_two_bytes_of_no_type_are_bfloat16(tmp_path, capsys):
    """numpy.save writes so what ml_dtypes calls bfloat16."""
    np.save(tmp_path / "x.npy", HALF.view(torch.int16).numpy().view("V2"))
    equal(load(tmp_path / "x.npy")[0], {"": HALF})
    assert capsys.readouterr().err == f"note: {tmp_path}/x.npy holds |V2, which is read as bfloat16\n"


@pytest.mark.parametrize("dtype", ["U3", "M8[s]", "V4", "f4,f4"])
def test_other_types_are_refused(tmp_path, dtype):
    np.save(tmp_path / "x.npy", np.zeros(2, dtype))
    with pytest.raises(UserError, match=r"x\.npy holds .*: use an array of floats, integers or bool"):
        load(tmp_path / "x.npy")


def test_kinds_are_told_by_content(tmp_path):
    np.savez(tmp_path / "a.npz", x=A.numpy())
    (tmp_path / "a.npz").rename(tmp_path / "a.pt")
    equal(load(tmp_path / "a.pt")[0], {"x": A})


def test_several_files_and_folders(tmp_path):
    inner = tmp_path / "run" / "epoch0"
    inner.mkdir(parents=True)
    np.save(inner / "x.npy", A.numpy())
    save_file({"w": A}, tmp_path / "run" / "m.safetensors")
    (tmp_path / "run" / "notes.txt").write_text("not read")
    np.save(tmp_path / "y.npy", B.numpy())
    found, named = load(tmp_path / "run", tmp_path / "y.npy")
    equal(found, {"epoch0/x": A, "m/w": A, "y": B})
    assert named
    equal(load(inner)[0], {"x": A})
    with pytest.raises(UserError, match=r"x\.npy is given twice: name it once"):
        load(inner, inner / "x.npy")
    (tmp_path / "other").mkdir()
    np.save(tmp_path / "other" / "x.npy", A.numpy())
    with pytest.raises(UserError, match=r"x\.npy and .*x\.npy would both be called 'x': rename one, or give"):
        load(inner, tmp_path / "other")
    (tmp_path / "hollow").mkdir()
    with pytest.raises(UserError, match=r"hollow has no file that ends with \.npy"):
        load(tmp_path / "hollow")


class Trap:
    def __reduce__(self):
        return (pytest.fail, ("unpickled",))


def write_bad(folder):
    torch.save(torch.nn.Linear(2, 2), folder / "module.pt")
    torch.save({"a": A, "trap": Trap()}, folder / "trap.pt")
    torch.save({}, folder / "none.pt")
    torch.save({"a": A}, folder / "old.pt", _use_new_zipfile_serialization=False)
    torch.save({"a": {"b": A}, "a.b": A}, folder / "twice.pt")
    torch.save({"": A, "b": A}, folder / "empty.pt")
    np.savez(folder / "empty.npz", **{"": A.numpy()})
    save_file({"": A}, folder / "empty.safetensors")
    torch.save({"a": A}, folder / "whole.pt")
    (folder / "cut.pt").write_bytes((folder / "whole.pt").read_bytes()[:-100])
    np.savez(folder / "whole.npz", a=A.numpy())
    data = bytearray((folder / "whole.npz").read_bytes())
    data[400] ^= 1
    (folder / "flipped.npz").write_bytes(data)
    with zipfile.ZipFile(folder / "other.zip", "w") as archive:
        archive.writestr("readme.txt", "no array")
    zipfile.ZipFile(folder / "hollow.npz", "w").close()
    with zipfile.ZipFile(folder / "pair.npz", "w") as archive:
        archive.writestr("a.npy", "")
        archive.writestr("a.npy", "")
    save_file({"a": A}, folder / "whole.safetensors")
    whole = (folder / "whole.safetensors").read_bytes()
    (folder / "cut.safetensors").write_bytes(whole[:-1])
    (folder / "garbled.safetensors").write_bytes(whole[:9] + b"((" + whole[11:])
    about = b'{"t":{"dtype":"F32","shape":[9223372036854775808,0],"data_offsets":[0,0]}}'
    (folder / "shape.safetensors").write_bytes(struct.pack("<Q", len(about)) + about)
    (folder / "long.safetensors").write_bytes(struct.pack("<Q", 1 << 60) + whole[8:])
    (folder / "pickle.pt").write_bytes(pickle.dumps(Trap(), protocol=2))


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("module.pt", "it holds more than tensors in dicts and lists; save a state_dict"),
        ("trap.pt", "it holds more than tensors in dicts and lists"),
        ("none.pt", "holds no tensors"),
        ("old.pt", "it has torch's old format; load it and save it anew with torch.save"),
        ("twice.pt", "has two tensors called 'a.b'"),
        ("empty.pt", r"empty\.pt has a tensor with an empty name: a name has 1 character or more, rename it"),
        ("empty.npz", r"empty\.npz has a tensor with an empty name"),
        ("empty.safetensors", r"empty\.safetensors has a tensor with an empty name"),
        ("cut.pt", "it is no whole .npz or torch file"),
        ("flipped.npz", "its array 'a.npy' is damaged"),
        ("other.zip", "holds 'readme.txt', which is no array: save arrays alone with numpy.savez"),
        ("hollow.npz", r"hollow\.npz holds no arrays: save some with numpy\.savez"),
        ("pair.npz", "pair.npz: array a is given twice"),
        ("cut.safetensors", "cannot read .*cut.safetensors: "),
        ("garbled.safetensors", "cannot read .*garbled.safetensors: "),
        ("long.safetensors", "cannot read .*long.safetensors: "),
        ("shape.safetensors", "shape.safetensors: (torch has no tensor of its shape|it is no whole .safetensors file)$"),
        ("pickle.pt", "it is no .npy, .npz, .safetensors or torch"),
    ],
)
@pytest.mark.parametrize("piped", [False, True])
def test_damaged_and_foreign_files(tmp_path, monkeypatch, name, said, piped):
    write_bad(tmp_path)
    path = tmp_path / name
    if piped:
        monkeypatch.setattr("cdu_cli.tensor_files.STANDARD_INPUT", path)
    with pytest.raises(UserError, match=said) as caught:
        load(path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("ending", ["npz", "safetensors", "pt"])
def test_pipes_carry_the_same_tensors(tmp_path, monkeypatch, ending):
    write_bad(tmp_path)
    path = tmp_path / f"whole.{ending}"
    monkeypatch.setattr("cdu_cli.tensor_files.STANDARD_INPUT", path)
    equal(load(path)[0], {"a": A})
    with pytest.raises(UserError, match="has more than 1000 bytes: a greater --max-bytes allows more"):
        load(path, limit=1000)


@pytest.mark.parametrize("ending", ["npz", "safetensors", "pt"])
def test_larger_tensors_are_not_read(tmp_path, ending):
    write_bad(tmp_path)
    size = A.nbytes
    assert load(tmp_path / f"whole.{ending}", limit=size)[0]
    with pytest.raises(UserError, match=rf"{size} bytes: {size - 1} are allowed, a greater --max-bytes"):
        load(tmp_path / f"whole.{ending}", limit=size - 1)


def test_an_array_that_announces_more_than_the_archive_has(tmp_path):
    file = io.BytesIO()
    np.save(file, A.numpy())
    with zipfile.ZipFile(tmp_path / "x.npz", "w") as archive:
        archive.writestr("x.npy", file.getvalue()[:-1])
    with pytest.raises(UserError, match=r"no whole \.npy file"):
        load(tmp_path / "x.npz")


@pytest.mark.parametrize("order", ["little", "big"])
def test_values_of_a_torch_file_are_those_of_its_byte_order(tmp_path, order):
    """Torch swaps the bytes of a file of the other order after it has mapped them."""
    own, path = {"x": torch.arange(5000.0), "y": torch.arange(7)}, tmp_path / "x.pt"
    torch.save(own, tmp_path / "own.pt")
    with zipfile.ZipFile(tmp_path / "own.pt") as source, zipfile.ZipFile(path, "w") as changed:
        for info in source.infolist():
            content = source.read(info)
            if info.filename.endswith("/byteorder"):
                content = order.encode()
            elif order != sys.byteorder and "/data/" in info.filename:
                content = np.frombuffer(content, np.float32 if len(content) == 20000 else np.int64).byteswap().tobytes()
            changed.writestr(info.filename, content)
    loads = read_tensors([path], None, MappedFiles()).loads
    assert all(torch.equal(loads[name](), tensor) for name, tensor in own.items())


@pytest.mark.parametrize("files", [None, MappedFiles()])
def test_tensors_that_are_more_than_their_values_stay_what_they_are(tmp_path, files):
    values = torch.tensor([[1.0, 0.0], [0.0, -2.0]])
    kinds = {
        "conjugated": torch.complex(values, values).conj(),
        "negated": torch.complex(values, values).conj().imag,
        "sparse": values.to_sparse(),
        "transposed": torch.arange(6).reshape(2, 3).t(),
        "parameter": torch.nn.Parameter(values),
        "part": torch.arange(9)[2:5],
    }
    torch.save(kinds, tmp_path / "x.pt")
    loads = read_tensors([tmp_path / "x.pt"], None, files).loads
    assert list(loads) == list(kinds)
    for name, tensor in kinds.items():
        assert torch.equal(loads[name]().to_dense(), tensor.detach().to_dense()), name
