"""Lossless companions: indices of max pools as positions in windows, inputs that only lend their shape."""

import contextlib
import copy
import weakref
from math import ceil, log2, prod

import actcodec
import pytest
import torch
from actcodec.saved import pool_indices
from actcodec.saved.operations import Operation
from actcodec.saved.pool_indices import WindowPositions
from actcodec.saved.shape_only import SHAPE
from codecs_for_tests import ExactCodec
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from torch import nn
from torch.nn import functional as F

EMPTY = nn.Module()
#: Everything exact but for the companions.
COMPANIONS = actcodec.training.Policy(())
MAX_POOLS = {1: F.max_pool1d, 2: F.max_pool2d, 3: F.max_pool3d}
ADAPTIVE_MAX_POOLS = {1: F.adaptive_max_pool1d, 2: F.adaptive_max_pool2d, 3: F.adaptive_max_pool3d}
LAST = {4: torch.channels_last, 5: torch.channels_last_3d}


@pytest.fixture(scope="module", autouse=True, params=["torch", "kernels"])
def _computed_by(request):
    """Every test by torch and by the kernels."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pool_indices, "loaded", lambda: request.param == "kernels")
        yield


@st.composite
def max_pools(draw):
    """Shape of an input and arguments of a max pool that torch takes."""
    rank = draw(st.integers(1, 3))
    each = lambda least, most: tuple(draw(st.integers(least, most)) for _ in range(rank))  # noqa: E731
    kernel, stride, dilation = each(1, 4), draw(st.one_of(st.none(), st.just(each(1, 4)))), each(1, 3)
    padding = tuple(draw(st.integers(0, size // 2)) for size in kernel)
    extents = each(1, 11 if rank < 3 else 7)
    reach = zip(extents, padding, dilation, kernel, strict=True)
    assume(all(extent + 2 * pad >= step * (size - 1) + 1 for extent, pad, step, size in reach))
    lead = draw(st.sampled_from([(2, 3), (3,), (1, 1)]))
    return (*lead, *extents), {
        "kernel_size": kernel,
        "stride": stride,
        "padding": padding,
        "dilation": dilation,
        "ceil_mode": draw(st.booleans()),
    }


def values_of(shape, kind, seed, last=False):
    """Without ties, with many, or with infinities of both signs."""
    random = torch.Generator().manual_seed(seed)
    x = torch.randn(shape, generator=random)
    if kind == "ties":
        x = torch.randint(0, 3, shape, generator=random).float()
    elif kind == "infinite":
        x = torch.where(torch.rand(shape, generator=random) < 0.6, -torch.inf, x)
    return x.to(memory_format=LAST[x.ndim]) if last and x.ndim in LAST else x


def every_window_sees_the_input(shape, result, arguments):
    """Windows of dilated pools can step over a short input, from padding to padding.

    Torch then computes an index that is not in the window, and its own backward pass may write outside the gradient.
    """
    rank = len(arguments["kernel_size"])
    return all(
        any(0 <= output * (stride or size) - pad + step * dilation < extent for step in range(size))
        for extent, outputs, size, stride, pad, dilation in zip(
            shape[-rank:],
            result[-rank:],
            arguments["kernel_size"],
            arguments["stride"] or [None] * rank,
            arguments["padding"],
            arguments["dilation"],
            strict=True,
        )
        for output in range(outputs)
    )


def outcome(x, function, codec=None):
    """Result of the function, gradient of a weighted sum, and statistics; without hooks when there is no codec."""
    x = x.clone().requires_grad_()
    stats = None
    y = x * 1
    if codec is None:
        z = function(y)
    else:
        with actcodec.compress_activations(EMPTY, codec) as stats:
            z = function(y)
    weights = torch.randn(z.shape, generator=torch.Generator().manual_seed(5)).to(z.dtype)
    z.backward(weights, retain_graph=True)
    once = x.grad.clone()
    x.grad = None
    z.backward(weights)
    assert torch.equal(once, x.grad)
    assert once.stride() == x.grad.stride()
    return z.detach(), x.grad, stats


def assert_unchanged(x, function):
    """Result, gradient and its layout are those without hooks."""
    want, got = outcome(x, function), outcome(x, function, COMPANIONS)
    for a, b in zip(want[:2], got[:2], strict=True):
        assert torch.equal(a, b)
        assert a.stride() == b.stride()
    return got[2]


def test_the_memory_format_of_one_channel_is_kept():
    x = torch.randn(1, 1, 2, 1).as_strided((1, 1, 2, 1), (2, 1, 1, 1))
    assert_unchanged(x, lambda y: F.max_pool2d(y, 1))


@settings(max_examples=150, deadline=None)
@given(max_pools(), st.sampled_from(["normal", "ties", "infinite"]), st.booleans(), st.integers(0, 2**31))
def test_max_pools_of_any_kind_keep_positions_and_a_shape(pool, kind, last, seed):
    shape, arguments = pool
    rank = len(arguments["kernel_size"])
    x = values_of(shape, kind, seed, last)
    try:
        result = MAX_POOLS[rank](x, **arguments)
    except RuntimeError:  # torch has no result of size 0
        assume(False)
    assume(every_window_sees_the_input(shape, result.shape, arguments))
    outputs = result.numel()
    stats = assert_unchanged(x, lambda y: MAX_POOLS[rank](y, **arguments))
    bits = ceil(log2(prod(arguments["kernel_size"])))
    # In channels_last_3d torch's index of a window of -inf is not in the window; it is kept as it is.
    if not (rank == 3 and last and kind == "infinite" and stats.index_bytes_original == 0):
        assert stats.index_bytes_original == 8 * outputs
        assert stats.index_bytes_compressed == ceil(outputs * bits / 8)
    (record,) = stats.records
    assert (record.codec, record.bytes_original) == (SHAPE, 4 * x.numel())
    assert record.bytes_compressed == 16 * len(record.shape)


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 3), st.data(), st.sampled_from(["normal", "ties"]), st.booleans(), st.integers(0, 2**31))
def test_adaptive_max_pools(rank, data, kind, last, seed):
    extents = data.draw(st.tuples(*[st.integers(1, 9)] * rank))
    outputs = data.draw(st.tuples(*[st.one_of(st.integers(1, 10), st.none() if rank > 1 else st.just(1))] * rank))
    x = values_of((2, 3, *extents), kind, seed, last)
    stats = assert_unchanged(x, lambda y: ADAPTIVE_MAX_POOLS[rank](y, outputs if rank > 1 else outputs[0]))
    counts = [extent if out is None else out for extent, out in zip(extents, outputs, strict=True)]
    longest = [
        max(ceil((o + 1) * extent / count) - o * extent // count for o in range(count))
        for extent, count in zip(extents, counts, strict=True)
    ]
    assert stats.index_bytes_compressed == ceil(6 * prod(counts) * ceil(log2(prod(longest))) / 8)


def test_fractional_max_pools_keep_places_in_the_whole_input():
    pool = nn.FractionalMaxPool2d(3, 5, _random_samples=torch.rand(2, 3, 2))
    stats = assert_unchanged(values_of((2, 3, 13, 11), "ties", 3), pool)
    assert stats.index_bytes_compressed == ceil(6 * 25 * ceil(log2(13 * 11)) / 8)


@pytest.mark.parametrize(
    "call",
    [
        lambda y: torch.max_pool2d(y, 3, stride=[]),
        lambda y: torch.max_pool2d(y, [3, 2], padding=1),
        lambda y: F.max_pool2d(input=y, kernel_size=(2,), stride=(1,)),
        lambda y: F.max_pool2d(y, 17, 1, 8),
        lambda y: F.max_pool2d(y, 1),
        lambda y: F.max_pool2d(y, 3, 2, return_indices=True)[0],
        lambda y: F.max_pool2d_with_indices(y, 3, 2)[0],
        nn.MaxPool2d(3, 2, 1, dilation=2, ceil_mode=True),
        nn.AdaptiveMaxPool2d((3, None)),
    ],
)
def test_ways_to_call_a_max_pool(call):
    stats = assert_unchanged(torch.randn(2, 3, 17, 17), call)
    assert stats.index_bytes_original > 0
    assert stats.index_bytes_compressed < stats.index_bytes_original / 7


def test_nan_wins_and_its_index_comes_back():
    x = torch.randn(1, 1, 6, 6)
    x[0, 0, 2, 3] = torch.nan
    stats = assert_unchanged_with_nan(x)
    assert stats.index_bytes_compressed == ceil(9 * 4 / 8)


def assert_unchanged_with_nan(x):
    want, got = outcome(x, lambda y: F.max_pool2d(y, 3, 2, 1)), outcome(x, lambda y: F.max_pool2d(y, 3, 2, 1), COMPANIONS)
    assert want[0].isnan().any()
    assert torch.equal(want[1], got[1])
    return got[2]


@settings(max_examples=100, deadline=None)
@given(max_pools(), st.booleans())
def test_kernels_make_the_same_bytes(pool, last):
    shape, arguments = pool
    rank = len(arguments["kernel_size"])
    x = values_of(shape, "ties", 0, last and len(shape) == rank + 2)
    y, indices = getattr(F, f"max_pool{rank}d")(x, **arguments, return_indices=True)
    assume(every_window_sees_the_input(shape, y.shape, arguments))
    forms = []
    for kernels in (False, True):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(pool_indices, "loaded", lambda kernels=kernels: kernels)
            forms.append(WindowPositions.of(indices, Operation("pool", (x,), arguments, f"max_pool{rank}d")))
            assert torch.equal(forms[-1].tensor(), indices)
    assert torch.equal(forms[0]._packed, forms[1]._packed)


def test_indices_that_are_not_of_the_windows_are_left_alone():
    x = torch.randn(1, 1, 8, 8)
    _, indices = F.max_pool2d(x, 2, return_indices=True)
    pool = Operation("pool", (x, 2), {}, "max_pool2d")
    assert torch.equal(WindowPositions.of(indices, pool).tensor(), indices)
    for wrong in (indices + 8 * 2, indices.flip(3), indices - 64, indices + 64):
        assert WindowPositions.of(wrong, pool) is None
    for other in (Operation("pool", (x, indices, 2), {}, "max_unpool2d"), Operation("max", (x, 2), {}, "max")):
        assert WindowPositions.of(indices, other) is None
    dilated = Operation("pool", (x, 2), {"dilation": 2, "stride": 1}, "max_pool2d")
    _, indices = F.max_pool2d(x, 2, 1, dilation=2, return_indices=True)
    assert torch.equal(WindowPositions.of(indices, dilated).tensor(), indices)
    assert WindowPositions.of(indices + 1, dilated) is None


def test_windows_that_step_over_the_input_are_left_alone():
    """From padding to padding; torch gives them an index outside the input."""
    x = torch.randn(1, 1, 1, 3, requires_grad=True)
    with actcodec.compress_activations(EMPTY, COMPANIONS) as stats:
        _, indices = F.max_pool2d(x * 1, (2, 1), padding=(1, 0), dilation=(2, 1), return_indices=True)
    assert indices.max() >= x.numel()
    assert stats.index_bytes_original == 0


SHAPE_ONLY = {
    "avg_pool1d": (3, lambda y: F.avg_pool1d(y, 3, 2, 1)),
    "avg_pool2d": (4, lambda y: F.avg_pool2d(y, (3, 2), 2, 1, ceil_mode=True, count_include_pad=False)),
    "avg_pool3d": (5, lambda y: F.avg_pool3d(y, 3, 2, 1, divisor_override=5)),
    "adaptive_avg_pool1d": (3, lambda y: F.adaptive_avg_pool1d(y, 4)),
    "adaptive_avg_pool2d": (4, lambda y: F.adaptive_avg_pool2d(y, (4, None))),
    "adaptive_avg_pool3d": (5, lambda y: F.adaptive_avg_pool3d(y, 4)),
    "area": (4, lambda y: F.interpolate(y, size=4, mode="area")),
    "reflect1": (3, lambda y: F.pad(y, (2, 1), mode="reflect")),
    "reflect2": (4, nn.ReflectionPad2d(2)),
    "reflect3": (5, nn.ReflectionPad3d(1)),
    "replicate1": (3, lambda y: F.pad(y, (2, 1), mode="replicate")),
    "replicate2": (4, nn.ReplicationPad2d((1, 2, 3, 0))),
    "replicate3": (5, nn.ReplicationPad3d(1)),
    "gather": (4, lambda y: y.gather(1, torch.zeros(2, 2, 3, 4, dtype=torch.long))),
    "take_along_dim": (4, lambda y: torch.take_along_dim(y, torch.ones(1, 1, 1, 1, dtype=torch.long), 1)),
    "max_pool1d": (3, lambda y: F.max_pool1d(y, 3, 2, 1)),
    "max_pool2d": (4, lambda y: F.max_pool2d(y, 3, 2, 1)),
    "max_pool3d": (5, lambda y: F.max_pool3d(y, 3, 2, 1)),
    "adaptive_max_pool2d": (4, lambda y: F.adaptive_max_pool2d(y, 4)),
    "adaptive_max_pool3d": (5, lambda y: F.adaptive_max_pool3d(y, 4)),
    "fractional_max_pool2d": (
        4,
        lambda y: F.fractional_max_pool2d(y, 2, 4, _random_samples=y.new_full((2, 3, 2), 0.3)),
    ),
    "fractional_max_pool3d": (
        5,
        lambda y: F.fractional_max_pool3d(y, 2, 4, _random_samples=y.new_full((2, 3, 3), 0.3)),
    ),
}


# Torch pools no volumes of bfloat16 on the CPU.
FORMATS = [(name, dtype) for name in SHAPE_ONLY for dtype in (torch.float32, torch.float64)]
FORMATS += [(name, torch.bfloat16) for name, (rank, _) in SHAPE_ONLY.items() if rank < 5]


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize(("name", "dtype"), FORMATS)
def test_operations_that_need_no_value_of_their_input(name, dtype, last):
    """Backward gets NaN, which the gradient would show."""
    rank, function = SHAPE_ONLY[name]
    x = values_of((2, 3, *[9] * (rank - 2)), "normal", 3, last).to(dtype)
    (record,) = assert_unchanged(x, function).records
    assert (record.codec, record.bytes_original) == (SHAPE, x.numel() * x.element_size())
    assert record.bytes_compressed < 100


def second_derivative(function, x, hooks, backward_inside):
    x = x.clone().requires_grad_()
    with contextlib.ExitStack() as stack:
        if hooks:
            stack.enter_context(actcodec.compress_activations(EMPTY, COMPANIONS))
        z = function(x * 1)
        if not backward_inside:
            stack.close()
        (first,) = torch.autograd.grad((z**3).sum(), x, create_graph=True)
        return torch.autograd.grad(first.square().sum(), x)[0]


@pytest.mark.parametrize("backward_inside", [False, True])
@pytest.mark.parametrize("name", [name for name in SHAPE_ONLY if "fractional" not in name])
def test_double_backward_needs_no_value_either(name, backward_inside):
    """It wants indices and sizes. Torch has none of fractional pools."""
    rank, function = SHAPE_ONLY[name]
    x = values_of((2, 3, *[9] * (rank - 2)), "normal", 4)
    want = second_derivative(function, x, False, backward_inside)
    assert want.any()
    assert torch.equal(second_derivative(function, x, True, backward_inside), want)


def test_an_input_that_another_operation_wants_is_kept_with_its_values():
    """Whichever comes first: values, signs or the shape."""
    conv, x = nn.Conv2d(4, 4, 3), torch.randn(2, 4, 8, 8)

    def pool_first(y):
        return F.max_pool2d(y, 2).sum() + conv(y).sum()

    def pool_last(y):
        return conv(y).sum() + F.max_pool2d(y, 2).sum() + F.avg_pool2d(y, 2).sum()

    for function in (pool_first, pool_last):
        codec = ExactCodec()
        want, got = outcome(x, function), outcome(x, function, codec)
        assert torch.equal(want[1], got[1])
        assert codec.given == [tuple(x.shape)]
        (record,) = got[2].records
        assert (record.codec, record.saved_by) == ("copy", ("pool", "conv") if function is pool_first else ("conv", "pool"))
        assert record.bytes_compressed == record.bytes_original == 4 * x.numel()
        assert outcome(x, function, COMPANIONS)[2].records[0].codec == "exact"


def test_a_shape_keeps_no_memory_of_its_tensor():
    x = torch.randn(2, 3, 8, 8, requires_grad=True)
    with actcodec.compress_activations(EMPTY, COMPANIONS):
        y = x * 1
        storage = weakref.ref(y.untyped_storage())
        z = F.max_pool2d(y, 2)
        del y
    assert storage() is None
    z.sum().backward()
    assert x.grad.sum() == z.numel()


def test_relu_into_pool_is_signs_and_positions():
    """As GIST has it: 1 bit per value of the ReLU, 2 bits per index of a 2x2 pool."""
    x = torch.randn(2, 4, 16, 16)
    want = outcome(x, lambda y: F.max_pool2d(F.relu(y), 2))
    got = outcome(x, lambda y: F.max_pool2d(F.relu(y), 2), "gist")
    assert torch.equal(want[1], got[1])
    (record,) = got[2].records
    assert (record.codec, record.saved_by) == ("brc", ("relu", "pool"))
    assert got[2].index_bytes_compressed == 2 * 4 * 64 * 2 / 8


def test_error_of_a_shape_is_none_of_its_business():
    with actcodec.compress_activations(EMPTY, COMPANIONS, measure_error=True) as stats:
        F.avg_pool2d(torch.randn(2, 3, 8, 8, requires_grad=True) * 1, 2)
    assert [record.relative_error for record in stats.records] == [0.0]
    assert SHAPE in stats.table()


class Block(nn.Module):
    """Two convolutions with a shortcut."""

    def __init__(self, channels):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(channels, channels, 3, 1, 1, bias=False),
            nn.BatchNorm2d(channels),
            nn.ReLU(),
            nn.Conv2d(channels, channels, 3, 1, 1, bias=False),
            nn.BatchNorm2d(channels),
        )

    def forward(self, x):
        return F.relu(self.body(x) + x)


def network(kind, pool, seed):
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        if kind == "resnet":
            stem = [nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), pool, Block(8), nn.AdaptiveAvgPool2d(2)]
        else:
            stem = [nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(inplace=True), nn.Conv2d(8, 8, 3, padding=1), nn.ReLU(inplace=True)]
            stem += [pool, nn.Conv2d(8, 8, 3, padding=1), nn.ReLU(), nn.AdaptiveMaxPool2d(2), nn.Dropout(0.25)]
        return nn.Sequential(*stem, nn.Flatten(), nn.Linear(32, 5))


def gradients(model, x, codec):
    torch.manual_seed(2)  # seed of dropout
    if codec is None:
        loss, stats = F.cross_entropy(model(x), torch.arange(len(x))), None
    else:
        with actcodec.compress_activations(model, codec) as stats:
            loss = F.cross_entropy(model(x), torch.arange(len(x)))
    loss.backward()
    return loss.detach(), [parameter.grad for parameter in model.parameters()], stats


@settings(max_examples=25, deadline=None)
@given(
    st.sampled_from(["resnet", "vgg"]),
    st.integers(2, 4),
    st.integers(1, 3),
    st.integers(0, 2),
    st.integers(1, 2),
    st.booleans(),
    st.booleans(),
    st.tuples(st.integers(9, 14), st.integers(9, 14)),
    st.integers(0, 2**31),
)
def test_gradients_of_networks_to_the_last_bit(kind, kernel, stride, padding, dilation, ceil_mode, last, extents, seed):
    """With the companions and the signs of ReLU alone."""
    pool = nn.MaxPool2d(kernel, stride, min(padding, kernel // 2), dilation, ceil_mode=ceil_mode)
    model = network(kind, pool, seed)
    x = values_of((4, 3, *extents), "normal", seed, last)
    if last:
        model = model.to(memory_format=torch.channels_last)
    plain = gradients(copy.deepcopy(model), x, None)
    small = gradients(model, x, "brc")
    assert torch.equal(plain[0], small[0])
    assert all(torch.equal(a, b) for a, b in zip(plain[1], small[1], strict=True))
    assert small[2].ratio > 1.2
    assert 8 < small[2].index_bytes_original / small[2].index_bytes_compressed <= 64


def test_none_leaves_everything_as_it_is():
    """The uncompressed baseline counts the same bytes and keeps them all."""
    model = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Dropout(0.5), nn.Conv2d(4, 4, 3), nn.AvgPool2d(2))
    x = torch.randn(2, 1, 16, 16)
    counted = {}
    for name, policy in (("none", "none"), ("companions", COMPANIONS)):
        with actcodec.compress_activations(model, policy) as stats:
            model(x).sum().backward()
        counted[name] = stats
    assert counted["none"].bytes_original == counted["companions"].bytes_original
    assert counted["none"].ratio == 1
    assert counted["none"].index_bytes_original == 0
    assert {record.codec for record in counted["none"].records} == {"exact"}
    assert {"shape", "bits"} <= {record.codec for record in counted["companions"].records}
