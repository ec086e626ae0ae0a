"""Run tests as root, or as a user whom permissions restrict."""

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
    """A context in which the process is no root (another user for root, else who it is), and a folder of that user."""
    return _ordinary_user()
