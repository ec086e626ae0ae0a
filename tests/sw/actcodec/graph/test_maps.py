"""Maps of convolutions: what a graph computes, and how the results lie, stays; convolutions read channels last."""

import pytest
import torch
from actcodec.graph.maps import lay_out_maps
from torch import fx, nn
from torch.nn import functional as F

_LAST = {4: torch.channels_last, 5: torch.channels_last_3d}


class Net(nn.Module):
    """Convolutions, a view of their maps as rows, and maps among the results."""

    def __init__(self, kind=nn.Conv2d, up=nn.ConvTranspose2d):
        super().__init__()
        self.first, self.up, self.rows = kind(3, 4, 3, padding=1), up(4, 2, 2, 2), nn.Linear(4, 5)

    def forward(self, x):
        maps = F.relu(self.first(x))
        rows = maps.view(maps.shape[0], -1)
        return self.up(maps), maps.flatten(2), self.rows(rows.view(-1, 4)), rows


class Reader(fx.Interpreter):
    """Remembers the maps that convolutions read."""

    def __init__(self, graph):
        super().__init__(graph)
        self.read = []

    def call_function(self, target, args, kwargs):
        if "conv" in target.__name__:
            self.read.append(args[0])
        return super().call_function(target, args, kwargs)


def laid_out(model, x):
    """Return the model's results in its laid out graph, and what convolutions read."""
    readers = []

    def backend(graph, given):
        lay_out_maps(graph)
        readers.append(Reader(graph))
        return lambda *values: readers[0].run(*values)

    found = torch.compile(model, backend=backend)(x)
    assert len(readers) == 1
    return found, readers[0].read


@pytest.mark.parametrize(
    ("kinds", "shape"),
    [((nn.Conv2d, nn.ConvTranspose2d), (2, 3, 8, 8)), ((nn.Conv3d, nn.ConvTranspose3d), (2, 3, 4, 8, 8))],
)
def test_convolutions_read_channels_last_and_results_lie_as_before(kinds, shape):
    torch.manual_seed(0)
    model, x = Net(*kinds), torch.randn(shape)
    found, read = laid_out(model, x)
    assert len(read) == 2
    assert all(one.is_contiguous(memory_format=_LAST[one.dim()]) for one in read)
    for one, expected in zip(found, model(x), strict=True):
        assert one.stride() == expected.stride()
        torch.testing.assert_close(one, expected)


def test_maps_stay_where_weights_have_more_bytes():
    x = torch.randn(2, 64, 4, 4)
    _, read = laid_out(nn.Conv2d(64, 64, 3), x)
    assert all(one.is_contiguous() for one in read)


def test_a_graph_that_depends_on_strides_stays():
    model, x = nn.Conv2d(3, 4, 3), torch.randn(2, 3, 8, 8)
    found, read = laid_out(lambda x: model(x).as_strided((6, 4), (1, 2)), x)
    assert all(one.is_contiguous() for one in read)
    assert torch.equal(found, model(x).as_strided((6, 4), (1, 2)))
