"""Real libraries for the plug-in's tests."""

import sys
from pathlib import Path

import pytest
import torch
from actcodec.study.models import library
from cdu_tools.errors import MissingToolError

HERE = Path(__file__).parent
sys.path[:0] = [str(folder) for folder in (HERE, HERE.parent / "training", HERE.parents[2] / "benchmarks")]


@pytest.fixture(autouse=True)
def _repeatable():
    torch.manual_seed(0)


@pytest.fixture(scope="session")
def torchvision():
    """The library, see :func:`actcodec.study.models.library.torchvision`."""
    try:
        return library.torchvision()
    except MissingToolError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def transformers(torchvision):
    """The library; it imports torchvision where that is installed."""
    return pytest.importorskip("transformers", reason="needs transformers: pip install 'cdu[models]'")
