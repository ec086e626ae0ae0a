"""Image sets: two that a dependency ships (digits, photos) and two that a user has on disk (cifar10, fashion-mnist)."""

from actcodec.study.data.dataset import DATASET_NAMES, Dataset, load

__all__ = ["DATASET_NAMES", "Dataset", "load"]
