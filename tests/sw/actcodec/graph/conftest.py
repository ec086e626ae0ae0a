"""Graphs of models that are compiled: run as they are in every run of the tests, compiled by inductor in campaigns."""

import pytest
from actcodec.graph import compiled
from graph_steps import run_as_they_are


@pytest.fixture
def graphs_as_they_are(monkeypatch):
    """Run the rewritten graphs operation by operation."""
    monkeypatch.setattr(compiled, "inductor", run_as_they_are)


@pytest.fixture(params=["as they are", pytest.param("inductor", marks=pytest.mark.campaign)])
def graphs(request):
    """Run the rewritten graphs as they are, or let inductor compile them."""
    if request.param != "inductor":
        request.getfixturevalue("graphs_as_they_are")
