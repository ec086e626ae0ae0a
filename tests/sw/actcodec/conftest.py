"""Real libraries for the plug-in's tests."""

import pytest
from actcodec.study.models import library
from cdu_tools.errors import MissingToolError


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
    return pytest.importorskip("transformers", reason="needs transformers: pip install 'actcodec[models]'")
