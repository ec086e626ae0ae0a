"""Image sets: two that a dependency ships (digits, photos) and two that a user has on disk (cifar10, fashion-mnist)."""

from actcodec.study.data.catalog import DATASET_NAMES, load
from actcodec.study.data.dataset import Dataset

__all__ = ["DATASET_NAMES", "Dataset", "load"]
