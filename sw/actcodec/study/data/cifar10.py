"""CIFAR-10 from its official folders (``cifar-10-batches-py``, ``cifar-10-batches-bin``) or from an .npz file."""

from __future__ import annotations

import io
import pickle
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from cdu_tools.errors import MissingToolError, UserError

from actcodec.study.data.dataset import Dataset, classification

_PYTHON, _BINARY = "cifar-10-batches-py", "cifar-10-batches-bin"
_IMAGE_BYTES = 3 * 32 * 32
_NPZ_KEYS = ("train_images", "train_labels", "test_images", "test_labels")
# The classes that a batch file needs; anything else in a pickle could run code.
_ADMITTED = {
    ("numpy.core.multiarray", "_reconstruct"),
    ("numpy._core.multiarray", "_reconstruct"),
    ("numpy", "ndarray"),
    ("numpy", "dtype"),
    ("_codecs", "encode"),
}
Part = tuple[np.ndarray, np.ndarray]


class _BatchUnpickler(pickle.Unpickler):
    """Read arrays, bytes, lists and dictionaries, and refuse everything else."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in _ADMITTED:
            raise pickle.UnpicklingError(f"it asks for {module}.{name}")
        return super().find_class(module, name)


def load(data: Path | None) -> Dataset:
    """Return the set at ``data``: the folder itself, one that holds it, or an .npz file (also ``cifar10.npz`` in the folder).

    Raises MissingToolError if it is missing, UserError for malformed files.
    """
    if data is not None:
        for folder in (data / _PYTHON, data):
            if (folder / "data_batch_1").is_file():
                return _dataset([_python(folder / f"data_batch_{i}") for i in range(1, 6)], _python(folder / "test_batch"))
        for folder in (data / _BINARY, data):
            if (folder / "data_batch_1.bin").is_file():
                train = [_binary(folder / f"data_batch_{i}.bin") for i in range(1, 6)]
                return _dataset(train, _binary(folder / "test_batch.bin"))
        for file in (data, data / "cifar10.npz"):
            if file.suffix == ".npz" and file.is_file():
                return _npz(file)
    where = "no place was given" if data is None else f"{data} has none of them"
    raise MissingToolError(
        f"CIFAR-10 is not here ({where}): give --data PATH or set CDU_DATA_DIR to a folder with {_PYTHON}, {_BINARY} "
        "(unpacked from cifar-10-python.tar.gz or cifar-10-binary.tar.gz) or cifar10.npz"
    )


def _dataset(train: list[Part], test: Part) -> Dataset:
    images, labels = zip(*train, strict=True)
    return classification("cifar10", "CIFAR-10", (np.concatenate(images), np.concatenate(labels)), test)


def _rows(pixels: np.ndarray, labels: np.ndarray) -> Part:
    return pixels.reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1), labels


def _read(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise UserError(f"cannot read {file}: {error.strerror}") from None


def _python(file: Path) -> Part:
    content = _read(file)
    try:
        batch = _BatchUnpickler(io.BytesIO(content), encoding="bytes").load()
    except Exception as error:  # a broken pickle can raise anything
        raise UserError(f"{file} is not a CIFAR-10 batch: {error or type(error).__name__}") from None
    pixels = batch.get(b"data") if isinstance(batch, dict) else None
    labels = batch.get(b"labels") if isinstance(batch, dict) else None
    if not isinstance(pixels, np.ndarray) or pixels.dtype != np.uint8 or pixels.ndim != 2 or pixels.shape[1] != _IMAGE_BYTES:
        raise UserError(f"{file} is not a CIFAR-10 batch: it has no 'data' of uint8 (N, {_IMAGE_BYTES})")
    if not isinstance(labels, list) or len(labels) != len(pixels) or not all(type(label) is int for label in labels):
        raise UserError(f"{file} is not a CIFAR-10 batch: it has no 'labels', one whole number per image")
    return _rows(pixels, np.array(labels))


def _binary(file: Path) -> Part:
    content = np.frombuffer(_read(file), dtype=np.uint8)
    if not len(content) or len(content) % (1 + _IMAGE_BYTES):
        raise UserError(f"{file} is not a CIFAR-10 batch: {len(content)} bytes are no multiple of {1 + _IMAGE_BYTES}")
    rows = content.reshape(-1, 1 + _IMAGE_BYTES)
    return _rows(rows[:, 1:], rows[:, 0].astype(np.int64))


def _npz(file: Path) -> Dataset:
    try:
        with np.load(file, allow_pickle=False) as arrays:
            missing = [key for key in _NPZ_KEYS if key not in arrays]
            if missing:
                raise UserError(f"{file} has no array {missing[0]}: it needs {', '.join(_NPZ_KEYS)}")
            train_images, train_labels, test_images, test_labels = (arrays[key] for key in _NPZ_KEYS)
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
        raise UserError(f"cannot read {file}: {error}") from None
    train, test = (train_images, train_labels.reshape(-1)), (test_images, test_labels.reshape(-1))
    note = f"{len(train_images)} training and {len(test_images)} test images of CIFAR-10 from {file.name}"
    return classification("cifar10", note, train, test)
