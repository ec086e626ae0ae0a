"""Real libraries for the plug-in's tests."""

import sys
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

import pytest
import torch

HERE = Path(__file__).parent
sys.path[:0] = [str(folder) for folder in (HERE, HERE.parent / "training", HERE.parents[2] / "benchmarks")]


@pytest.fixture(autouse=True)
def _repeatable():
    torch.manual_seed(0)


@pytest.fixture(scope="session")
def torchvision():
    """The library; its operators for detection, which no model here has, are only declared where they do not load.

    The package index has torchvision for CUDA. Beside torch for the CPU its compiled operators do not load, and it cannot be
    imported without their names.
    """
    spec = find_spec("torchvision")
    if spec is None:
        pytest.skip("needs torchvision: pip install 'cdu[models]'")
    for library in Path(spec.origin).parent.glob("_C*.so"):
        with suppress(OSError):
            torch.ops.load_library(str(library))
    for name in ("nms", "qnms"):
        if not hasattr(torch.ops.torchvision, name):
            torch.library.define(f"torchvision::{name}", "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    return pytest.importorskip("torchvision", reason="needs torchvision: pip install 'cdu[models]'")


@pytest.fixture(scope="session")
def transformers(torchvision):
    """The library; it imports torchvision where that is installed."""
    return pytest.importorskip("transformers", reason="needs transformers: pip install 'cdu[models]'")
