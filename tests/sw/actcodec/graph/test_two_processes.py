"""Two processes over gloo train a compiled network with coded values as they do with all values kept."""

from __future__ import annotations

import graph_worker
import pytest
import torch
from graph_steps import cosine


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """Return the results of each process by way and policy."""
    path = tmp_path_factory.mktemp("processes")
    arguments = (str(path / "rendezvous"), str(path / "results"))
    torch.multiprocessing.spawn(graph_worker.run, arguments, nprocs=graph_worker.WORLD)
    return [torch.load(path / f"results.{rank}") for rank in range(graph_worker.WORLD)]


@pytest.fixture(scope="module")
def alone():
    """The gradient of the whole batch on one process, eagerly."""
    model = graph_worker.network()
    model(graph_worker.batch()).square().mean().backward()
    return {name: p.grad for name, p in model.named_parameters()}


@pytest.mark.parametrize("way", graph_worker.WAYS)
def test_gradients_are_those_of_one_process(found, alone, way):
    for by_way in found:
        exact, got = by_way[way, "keep"], by_way[way, "int8"]
        assert torch.equal(got["loss"], exact["loss"])
        assert cosine(exact["gradients"], alone) >= 0.999999
        assert cosine(got["gradients"], alone) >= 0.999
        values = [shape for name, shape in got["coded"] if name == "int8"]
        assert values
        # Activations have a row for each sample; parameters, gathered or not, have none.
        assert all(shape[0] in (96, 192) for shape in values)
        assert not {(256, 128), (128, 256)} & set(values)
