"""Depthwise convolutions whose maps lie channels last: no map is copied, and gradients stay."""

import pytest
import torch
from actcodec.graph import pair
from actcodec.graph.choices import Choices
from actcodec.graph.compiled import Compiled
from actcodec.graph.depthwise import keep_layouts
from actcodec.graph.live_bytes import peak_of_step
from torch import nn
from torch.fx.experimental.proxy_tensor import make_fx

MAP = 16 * 32 * 32 * 32 * 4  # bytes


class Net(nn.Module):
    """Widens maps, convolves channel by channel, and narrows them, as a block of MobileNetV2 does."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.wide = nn.Sequential(nn.Conv2d(8, 32, 1, bias=False), nn.BatchNorm2d(32), nn.ReLU6())
        self.depth = nn.Sequential(nn.Conv2d(32, 32, 3, 2, 1, groups=32, bias=False), nn.BatchNorm2d(32), nn.ReLU6())
        self.narrow = nn.Conv2d(32, 8, 1)

    def forward(self, x):
        return self.narrow(self.depth(self.wide(x))).square().mean()


@torch.compiler.config.patch(force_disable_caches=True)
def trained():
    """Return the gradients of a compiled step, and its peak."""
    torch._dynamo.reset()
    x, model = torch.rand(16, 8, 32, 32, generator=torch.Generator().manual_seed(1)), Net()
    compiled = Compiled(model, Choices("keep"), None)
    model(x).backward()
    found = [parameter.grad.clone() for parameter in model.parameters()]
    for parameter in model.parameters():
        parameter.grad.zero_()
    peak = peak_of_step(lambda: model(x).backward(), torch.device("cpu"))
    compiled.close()
    return found, peak


def test_the_backward_copies_no_map(monkeypatch):
    found, peak = trained()
    monkeypatch.setattr(pair, "keep_layouts", lambda graph: None)
    exact, copied = trained()
    assert copied - peak >= MAP
    for own, other in zip(found, exact, strict=True):
        torch.testing.assert_close(own, other, rtol=1e-4, atol=1e-6)


def traced(x, groups, channels=8):
    """Return the graph of the backward of a convolution from 8 channels to others."""
    weight = torch.rand(channels, 8 // groups, 3, 3)
    gradient = torch.rand(2, channels, 6, 6).contiguous(memory_format=torch.channels_last)

    def backward(gradient, x, weight):
        more = [channels], [1, 1], [1, 1], [1, 1], False, [0, 0], groups, [True, True, False]
        return torch.ops.aten.convolution_backward.default(gradient, x, weight, *more)[:2]

    given = gradient, x, weight
    graph = make_fx(backward, tracing_mode="fake")(*given)
    graph.graph.eliminate_dead_code()
    graph.recompile()
    return graph, given


LAST = torch.rand(2, 8, 6, 6).contiguous(memory_format=torch.channels_last)


@pytest.mark.parametrize(
    ("x", "groups", "channels", "replaced"),
    [(LAST, 8, 8, True), (LAST, 8, 16, True), (LAST, 2, 8, False), (LAST, 1, 8, False), (LAST.contiguous(), 8, 8, False)],
)
def test_only_depthwise_convolutions_that_lie_channels_last_are_replaced(x, groups, channels, replaced):
    graph, given = traced(x, groups, channels)
    before = graph(*given)
    keep_layouts(graph.graph)
    graph.recompile()
    targets = {node.target for node in graph.graph.nodes}
    assert (torch.ops.actcodec.depthwise_backward.default in targets) == replaced
    assert (torch.ops.aten.convolution_backward.default in targets) != replaced
    for own, other in zip(graph(*given), before, strict=True):
        assert torch.equal(own, other)
        assert own.stride() == other.stride()


def test_the_operation_keeps_what_torch_asks_of_one():
    _, (gradient, x, weight) = traced(LAST, 8)
    torch.library.opcheck(torch.ops.actcodec.depthwise_backward.default, (gradient, x, weight, [1, 1], [1, 1], [1, 1], 8))


@pytest.mark.campaign
def test_batches_of_other_sizes_train():
    torch._dynamo.reset()
    plain, model = Net(), Net()
    compiled = Compiled(model, Choices("keep"), None)
    for count in (16, 12, 20):
        x = torch.rand(count, 8, 32, 32)
        for one in (plain, model):
            one.zero_grad()
            one(x).backward()
        for own, other in zip(model.parameters(), plain.parameters(), strict=True):
            torch.testing.assert_close(own.grad, other.grad, rtol=1e-3, atol=1e-6)
    compiled.close()
