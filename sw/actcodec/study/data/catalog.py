"""Catalogue of image sets by name."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path

from cdu_tools.errors import UserError

from actcodec.study.data import cifar10, fashion_mnist, shipped
from actcodec.study.data.dataset import Dataset

_ON_DISK: Mapping[str, Callable[[Path | None], Dataset]] = {"cifar10": cifar10.load, "fashion-mnist": fashion_mnist.load}
#: Names that :func:`load` takes.
DATASET_NAMES = (*shipped.LOADERS, *_ON_DISK)


def load(name: str, data: Path | None = None, limit: int | None = None) -> Dataset:
    """Return a data set by name.

    Parameters
    ----------
    name
        ``digits``, ``photos``, ``cifar10`` or ``fashion-mnist``.
    data
        Location of the files of cifar10 and fashion-mnist (a folder, or an .npz file for cifar10); $CDU_DATA_DIR by default.
    limit
        Number of training images (the first ones); all by default.

    Raises UserError for unknown names and malformed files, MissingToolError for missing files.
    """
    if limit is not None and limit < 1:
        raise UserError(f"{limit} training images are not enough: use 1 or more")
    if name in _ON_DISK:
        folder = os.environ.get("CDU_DATA_DIR")
        dataset = _ON_DISK[name](data or (Path(folder) if folder else None))
    elif name in shipped.LOADERS:
        if data is not None:
            raise UserError(f"--data is for {' and '.join(_ON_DISK)}: data set {name} comes with scikit-learn, leave it out")
        dataset = shipped.LOADERS[name]()
    else:
        raise UserError(f"unknown data set {name!r}: use {', '.join(DATASET_NAMES)}")
    return dataset if limit is None else dataset.first(limit)
