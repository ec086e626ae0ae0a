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
        return self.up(maps), maps.flatten(2), self.rows(rows.view(-1, 4)), rows.exp()


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


def _written_flat(maps):
    maps.flatten(1).mul_(3)
    return maps


def _written_in_part(maps):
    maps.view(-1)[:2000].mul_(3)
    return maps


def _written_after(maps):
    rows = maps.flatten(1)
    maps.mul_(2)
    return maps * rows.sum()


def _written_copy(maps):
    pixels = maps.permute(0, 2, 3, 1).contiguous()  # of maps that lie channels last, it would be no copy
    pixels.mul_(2)
    return maps


@pytest.mark.parametrize("write", [_written_flat, _written_in_part, _written_after, _written_copy])
def test_what_is_written_into_a_view_is_seen(write):
    torch.manual_seed(0)
    first, second, x = nn.Conv2d(3, 8, 3, padding=1), nn.Conv2d(8, 8, 3, padding=1), torch.randn(4, 3, 16, 16)

    def model(x):
        return second(write(first(x) * 1.0))

    found, _ = laid_out(model, x)
    torch.testing.assert_close(found, model(x))


def test_maps_that_were_written_before_they_are_viewed_lie_channels_last():
    """As in a network whose rectifiers work in place."""
    torch.manual_seed(0)
    net = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(inplace=True), nn.Conv2d(8, 8, 3), nn.ReLU(inplace=True), nn.Flatten())
    x = torch.randn(4, 3, 16, 16)
    found, read = laid_out(net, x)
    assert all(one.is_contiguous(memory_format=torch.channels_last) for one in read)
    torch.testing.assert_close(found, net(x))


@pytest.mark.parametrize(
    "shape",
    [
        lambda maps: maps.flatten(2).transpose(1, 2),  # tokens
        lambda maps: maps.permute(0, 2, 3, 1),
        lambda maps: maps.contiguous(memory_format=torch.channels_last),
        lambda maps: maps.mean(1, keepdim=True),
        lambda maps: maps[:, :4],
        lambda maps: maps[:, :1].expand(-1, 4, -1, -1),
        lambda maps: maps.view(torch.int32),
        lambda maps: torch.view_as_complex(maps.view(4, 8, 14, 7, 2)).abs(),
    ],
)
def test_results_have_the_strides_of_the_model(shape):
    torch.manual_seed(0)
    conv, x = nn.Conv2d(3, 8, 3), torch.randn(4, 3, 16, 16)
    found, _ = laid_out(lambda x: shape(conv(x)), x)
    assert found.stride() == shape(conv(x)).stride()
    torch.testing.assert_close(found, shape(conv(x)))


@pytest.mark.parametrize("axis", [0, 1])
def test_results_share_memory_as_those_of_the_model(axis):
    conv, x = nn.Conv2d(3, 8, 3), torch.randn(4, 3, 16, 16)

    def model(x):
        maps = conv(x)
        return maps, maps.flatten(axis)

    (maps, rows), _ = laid_out(model, x)
    assert maps.data_ptr() == rows.data_ptr()
