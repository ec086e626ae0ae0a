"""Fashion-MNIST from its four IDX files, gzipped or not."""

from __future__ import annotations

import gzip
import struct
import zlib
from pathlib import Path

import numpy as np
from cdu_tools.errors import MissingToolError, UserError

from actcodec.study.data.dataset import Dataset, classification

_UINT8 = 8


def load(data: Path | None) -> Dataset:
    """Return the set in folder ``data`` (or ``data/fashion-mnist``), enlarged from 28x28 to 32x32 by a black border.

    Raises MissingToolError if a file is missing, UserError for malformed ones.
    """
    parts = [(_find(data, f"{part}-images-idx3-ubyte"), _find(data, f"{part}-labels-idx1-ubyte")) for part in ("train", "t10k")]
    train, test = ((_images(images), _idx(labels, 1)) for images, labels in parts)
    return classification("fashion-mnist", "Fashion-MNIST with a black border of 2 pixels (32x32)", train, test)


def _find(data: Path | None, name: str) -> Path:
    for folder in () if data is None else (data, data / "fashion-mnist"):
        for file in (folder / name, folder / f"{name}.gz"):
            if file.is_file():
                return file
    where = "no place was given" if data is None else f"{data} has no {name}[.gz]"
    raise MissingToolError(
        f"Fashion-MNIST is not here ({where}): give --data DIR or set CDU_DATA_DIR to a folder with its four IDX files "
        "(Debian: apt install dataset-fashion-mnist)"
    )


def _images(file: Path) -> np.ndarray:
    return np.pad(_idx(file, 3), ((0, 0), (2, 2), (2, 2)))[..., None]


def _idx(file: Path, rank: int) -> np.ndarray:
    """Return a uint8 array of the IDX format: zero, zero, type, rank, extents (big endian), values."""
    try:
        content = file.read_bytes()
        if file.suffix == ".gz":
            content = gzip.decompress(content)
    except (OSError, EOFError, zlib.error) as error:
        raise UserError(f"cannot read {file}: {error}") from None
    start = 4 + 4 * rank
    if len(content) < start or content[:4] != bytes((0, 0, _UINT8, rank)):
        raise UserError(f"{file} is not an IDX file of rank {rank} with unsigned bytes")
    shape = struct.unpack(f">{rank}I", content[4:start])
    values = np.frombuffer(content, dtype=np.uint8, offset=start)
    count = 1
    for extent in shape:
        count *= extent
    if len(values) != count:
        raise UserError(f"{file} is truncated or too long: {len(values)} values, but its header says {count}")
    return values.reshape(shape)
