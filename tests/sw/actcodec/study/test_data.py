"""Data sets in every form, and bad files."""

import gzip
import pickle
import struct

import numpy as np
import pytest
import torch
from actcodec.study import data
from actcodec.study.data.dataset import classification
from cdu_tools.errors import MissingToolError, UserError

RNG = np.random.default_rng(0)


def part(n):
    return RNG.integers(0, 256, (n, 32, 32, 3), dtype=np.uint8), RNG.integers(0, 10, n)


TRAIN, TEST = part(50), part(20)


def write_npz(folder):
    np.savez(folder / "cifar10.npz", train_images=TRAIN[0], train_labels=TRAIN[1], test_images=TEST[0], test_labels=TEST[1])


def batches():
    for i in range(5):
        yield f"data_batch_{i + 1}", TRAIN[0][10 * i : 10 * i + 10], TRAIN[1][10 * i : 10 * i + 10]
    yield "test_batch", *TEST


def write_python(folder):
    where = folder / "cifar-10-batches-py"
    where.mkdir()
    for name, images, labels in batches():
        batch = {b"data": images.transpose(0, 3, 1, 2).reshape(len(images), -1), b"labels": labels.tolist()}
        (where / name).write_bytes(pickle.dumps(batch, protocol=2))


def write_binary(folder):
    where = folder / "cifar-10-batches-bin"
    where.mkdir()
    for name, images, labels in batches():
        planes = images.transpose(0, 3, 1, 2).reshape(len(images), -1)
        (where / f"{name}.bin").write_bytes(np.hstack([labels[:, None].astype(np.uint8), planes]).tobytes())


@pytest.mark.parametrize("write", [write_npz, write_python, write_binary])
def test_cifar10_in_each_form_is_the_same(tmp_path, write, monkeypatch):
    write(tmp_path)
    monkeypatch.setenv("CDU_DATA_DIR", str(tmp_path))
    found = data.load("cifar10")
    pixels = TRAIN[0].astype(np.float64)
    scaled = (TEST[0] - pixels.mean((0, 1, 2))) / pixels.std((0, 1, 2))
    torch.testing.assert_close(found.test_inputs, torch.from_numpy(scaled.transpose(0, 3, 1, 2)).float(), rtol=1e-4, atol=1e-4)
    assert found.train_targets.tolist() == TRAIN[1].tolist()
    assert len(data.load("cifar10", tmp_path, limit=7).train_inputs) == 7


class Evil:
    def __reduce__(self):
        return (print, ("executed",))


def test_a_pickle_that_runs_code_is_refused(tmp_path, capsys):
    write_python(tmp_path)
    (tmp_path / "cifar-10-batches-py" / "data_batch_3").write_bytes(pickle.dumps({b"data": Evil()}))
    with pytest.raises(UserError, match="print"):
        data.load("cifar10", tmp_path)
    assert "executed" not in capsys.readouterr().out


@pytest.mark.parametrize("content", [b"", b"\x80\x04rubbish", pickle.dumps([1, 2]), pickle.dumps({b"data": [1]})])
def test_a_broken_batch_is_one_sentence(tmp_path, content):
    write_python(tmp_path)
    (tmp_path / "cifar-10-batches-py" / "test_batch").write_bytes(content)
    with pytest.raises(UserError, match="not a CIFAR-10 batch"):
        data.load("cifar10", tmp_path)


def test_broken_binary_and_npz(tmp_path):
    write_binary(tmp_path)
    file = tmp_path / "cifar-10-batches-bin" / "data_batch_2.bin"
    file.write_bytes(file.read_bytes()[:-1])
    with pytest.raises(UserError, match="no multiple of 3073"):
        data.load("cifar10", tmp_path)
    other = tmp_path / "other.npz"
    np.savez(other, train_images=TRAIN[0])
    with pytest.raises(UserError, match="has no array train_labels"):
        data.load("cifar10", other)
    other.write_bytes(b"PK rubbish")
    with pytest.raises(UserError, match="cannot read"):
        data.load("cifar10", other)
    np.savez(other, train_images=TRAIN[0], train_labels=TRAIN[1] + 5, test_images=TEST[0], test_labels=TEST[1])
    with pytest.raises(UserError, match="label"):
        data.load("cifar10", other)


def idx(array):
    return struct.pack(f">BBBB{array.ndim}I", 0, 0, 8, array.ndim, *array.shape) + array.tobytes()


@pytest.mark.parametrize("zipped", [False, True])
def test_fashion_mnist(tmp_path, zipped):
    images = {"train": RNG.integers(0, 256, (30, 28, 28), dtype=np.uint8), "t10k": RNG.integers(0, 256, (9, 28, 28), np.uint8)}
    for name, array in images.items():
        labels = (np.arange(len(array)) % 10).astype(np.uint8)
        for file, content in ((f"{name}-images-idx3-ubyte", idx(array)), (f"{name}-labels-idx1-ubyte", idx(labels))):
            if zipped:
                (tmp_path / f"{file}.gz").write_bytes(gzip.compress(content))
            else:
                (tmp_path / file).write_bytes(content)
    found = data.load("fashion-mnist", tmp_path)
    assert found.train_inputs.shape == (30, 1, 32, 32)
    assert found.test_targets.tolist() == list(range(9))
    broken = next(tmp_path.glob("t10k-images*"))
    broken.write_bytes(broken.read_bytes()[:-3])
    with pytest.raises(UserError):
        data.load("fashion-mnist", tmp_path)


@pytest.mark.parametrize("name", ["cifar10", "fashion-mnist"])
def test_missing_data_says_where_to_put_it(tmp_path, name, monkeypatch):
    monkeypatch.delenv("CDU_DATA_DIR", raising=False)
    for place in (None, tmp_path):
        with pytest.raises(MissingToolError, match=r"--data .* CDU_DATA_DIR"):
            data.load(name, place)


def test_shipped_sets():
    digits, photos = data.load("digits"), data.load("photos")
    assert digits.train_inputs.shape[1:] == (1, 16, 16)
    assert len(digits.train_inputs) + len(digits.test_inputs) == 1797
    assert photos.test_inputs.shape[1:] == photos.test_targets.shape[1:] == (1, 32, 32)
    assert not torch.equal(photos.test_inputs, photos.test_targets)
    with pytest.raises(UserError, match="unknown data set"):
        data.load("mnist")


@pytest.mark.parametrize(
    "make",
    [lambda: data.load("digits"), lambda: data.load("photos")]
    + [lambda c=c: classification("any", "", *((images[..., :c], labels) for images, labels in (TRAIN, TEST))) for c in (1, 3)],
    ids=["digits", "photos", "grey", "colours"],
)
def test_images_lie_channel_by_channel(make):
    """With one channel the strides of (N, H, W, C) are contiguous too, but oneDNN takes them for channels last."""
    found = make()
    for images in (found.train_inputs, found.test_inputs):
        assert images.stride() == torch.empty(images.shape).stride()
