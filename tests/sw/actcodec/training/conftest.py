"""Fixtures for tests of contexts."""

import pytest
from context_steps import stacks


@pytest.fixture
def nothing_is_left():
    before = stacks()
    yield
    assert stacks() == before
