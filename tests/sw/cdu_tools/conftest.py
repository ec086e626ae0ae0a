"""Run tests as root, or as a user with restricted permissions."""

import os
import tempfile
from contextlib import contextmanager
from pathlib import Path

import pytest

NOBODY = 65534


@contextmanager
def _ordinary_user():
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if os.geteuid():
            yield folder
            return
        os.chown(folder, NOBODY, NOBODY)
        os.seteuid(NOBODY)
        try:
            yield folder
        finally:
            os.seteuid(0)


@pytest.fixture
def ordinary_user():
    """Provide a context in which the process is not root (another user for root, else the same), and a folder of that user."""
    return _ordinary_user()
