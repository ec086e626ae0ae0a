"""Parts of a graph: none is cut where a part would write into another's storage, however many parts are asked for."""

import pytest
import torch
from actcodec.graph.segments import compile_in_parts
from torch import nn


class Net(nn.Module):
    """Layers between a copy of the input and what, at the end, may write into the copy."""

    def __init__(self, writes):
        super().__init__()
        self.layers, self.writes = nn.Sequential(*(nn.Linear(16, 16) for _ in range(8))), writes

    def forward(self, x):
        kept = x.clone()
        y = self.layers(kept.tanh())
        return (kept.mul_(2) if self.writes else kept * 2) + y


@pytest.mark.parametrize(("writes", "parts"), [(False, 4), (True, 1)])
def test_no_part_writes_into_the_storage_of_another(writes, parts):
    compiled = []

    def part(graph, given, roles):
        compiled.append(graph)
        return graph.forward

    model, x = Net(writes), torch.randn(4, 16)
    expected = model(x)
    torch._dynamo.reset()
    found = torch.compile(model, backend=lambda graph, given: compile_in_parts(graph, given, part, 4))(x)
    assert torch.equal(found, expected)
    assert len(compiled) == parts
