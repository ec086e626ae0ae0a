"""Tensors of which backward needs the region of each value: lossless bits, and gradients without hooks to the last bit."""

import actcodec
import pytest
import torch
from actcodec.training import Policy, Rule
from codecs_for_tests import ExactCodec
from torch import nn
from torch.nn import functional as F

EMPTY = nn.Module()
#: Keeps every tensor exactly except those that need no values.
COMPANIONS = Policy(())

#: Activations and the like, the limits at which their derivative changes, and the bits of a value.
FUNCTIONS = {
    "relu6": (nn.ReLU6(), (0, 6), 1),
    "relu6 in place": (nn.ReLU6(inplace=True), (0, 6), 1),
    "torch's relu6": (torch._C._nn.relu6, (0, 6), 1),
    "hardtanh": (nn.Hardtanh(), (-1, 1), 1),
    "hardtanh of odd limits": (lambda y: F.hardtanh(y, 0.1, 0.3), (0.1, 0.3), 1),
    "hardtanh_": (lambda y: F.hardtanh_(y, max_val=2.0), (-1, 2), 1),
    "hardsigmoid": (nn.Hardsigmoid(), (-3, 3), 1),
    "hardsigmoid in place": (nn.Hardsigmoid(inplace=True), (-3, 3), 1),
    "leaky_relu": (nn.LeakyReLU(0.2), (0,), 1),
    "leaky_relu in place": (nn.LeakyReLU(0.2, inplace=True), (0,), 1),
    "leaky_relu below": (nn.LeakyReLU(-0.5), (0,), 1),
    "threshold": (nn.Threshold(0.1, 20.0), (0.1,), 1),
    "threshold_": (lambda y: F.threshold_(y, 0.1, 20.0), (0.1,), 1),
    "hardshrink": (nn.Hardshrink(0.3), (-0.3, 0.3), 1),
    "softshrink": (nn.Softshrink(0.3), (-0.3, 0.3), 1),
    "clamp": (lambda y: y.clamp(-0.3, 0.7), (-0.3, 0.7), 1),
    "clamp from": (lambda y: torch.clamp(y, min=0.1), (0.1,), 1),
    "clamp_": (lambda y: y.clamp_(max=0.7), (0.7,), 1),
    "clip": (lambda y: torch.clip(y, None, 0.7), (0.7,), 1),
    "clamp_min": (lambda y: y.clamp_min(0.1), (0.1,), 1),
    "clamp_max_": (lambda y: y.clamp_max_(max=0.7), (0.7,), 1),
    "abs": (abs, (0,), 2),
    "absolute_": (lambda y: y.absolute_(), (0,), 2),
    "nan_to_num": (lambda y: torch.nan_to_num(y, 1.0), (), 1),
    "nansum": (lambda y: y.nansum((0, 1)), (), 1),
}
EXTREMES = {
    "amax": lambda y: y.amax(1),
    "amax of maps": lambda y: torch.amax(y, (2, 3), keepdim=True),
    "amin": lambda y: y.amin(dim=(0, -1), keepdim=False),
    "amax of all": lambda y: y.amax(),
    "max": lambda y: y.max(),
    "min": torch.min,
}
LAYOUTS = {
    "contiguous": lambda x: x,
    "channels_last": lambda x: x.contiguous(memory_format=torch.channels_last),
    "slice": lambda x: x[:, ::2, 1:],
    "expanded": lambda x: x[:, :1].expand(-1, 5, -1, -1),
}


def values(limits, dtype, special=(torch.inf, -torch.inf)):
    """Return values on both sides of the limits, next to them, and special ones; with ties."""
    x = torch.randn(2, 6, 7, 9).to(dtype)
    x[0, 0, 0] = 0.25
    flat, place = x.view(-1), 40
    for limit in torch.tensor([*limits, 0.0, -0.0]).to(dtype):
        for value in (limit, torch.nextafter(limit, limit + 1), torch.nextafter(limit, limit - 1)):
            flat[place], place = value, place + 1
    for value in special:
        flat[place], place = value, place + 1
    return x


def gradient(x, function, codec=None, layout="contiguous", **options):
    """Return the gradient of a weighted sum at the leaf, and statistics."""
    leaf = x.clone().requires_grad_()
    y, stats = LAYOUTS[layout](leaf * 1), None
    if codec is None:
        z = function(y)
    else:
        with actcodec.compress_activations(EMPTY, codec, **options) as stats:
            z = function(y)
    z.backward(torch.randn(z.shape, generator=torch.Generator().manual_seed(5)).to(z.dtype))
    return leaf.grad, stats


def same(a, b):
    return torch.equal(a.isnan(), b.isnan()) and torch.equal(a.nan_to_num(7.0), b.nan_to_num(7.0))


FORMATS = [(layout, torch.float32) for layout in LAYOUTS] + [("contiguous", dtype) for dtype in (torch.bfloat16, torch.float16)]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradient_is_exact_from_bits(name):
    function, limits, bits = FUNCTIONS[name]
    for layout, dtype in FORMATS:
        one = (lambda y: function(y.clone())) if layout == "expanded" else function  # torch writes no such tensor in place
        x = values(limits, dtype)
        want, _ = gradient(x, one, layout=layout)
        got, stats = gradient(x, one, COMPANIONS, layout)
        assert torch.equal(got, want)
        (record,) = stats.records
        count = record.bytes_original // x.element_size()
        assert record.codec == "bits"
        assert record.bytes_compressed == bits * -(-count // 8) + 2**bits * x.element_size()


@pytest.mark.parametrize("name", FUNCTIONS)
def test_nan_is_as_torch_has_it(name):
    function, limits, _ = FUNCTIONS[name]
    x = values(limits, torch.float32, (torch.nan, torch.inf, torch.nan))
    assert same(gradient(x, function, COMPANIONS)[0], gradient(x, function)[0])


@pytest.mark.parametrize("name", FUNCTIONS)
def test_values_all_in_one_region(name):
    function, limits, _ = FUNCTIONS[name]
    for value in (-100.0, *limits, *(limit + 0.05 for limit in limits), 100.0):
        x = torch.full((3, 5, 2, 2), float(value))
        assert torch.equal(gradient(x, function, "sfpr")[0], gradient(x, function)[0])


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", EXTREMES)
def test_gradient_of_an_extreme_is_exact_from_one_bit(name, layout):
    for special in ((), (torch.inf, -torch.inf, torch.nan)):
        x = values((), torch.float32, special)
        want, _ = gradient(x, EXTREMES[name], layout=layout)
        got, stats = gradient(x, EXTREMES[name], COMPANIONS, layout)
        assert same(got, want)
        record = stats.records[0]
        if layout == "expanded" and name == "amax":  # extremes of one value each
            assert record.codec == "exact"
        else:
            assert record.codec == "bits"
            assert record.bytes_compressed < record.bytes_original / 2


def test_ties_share_the_gradient_of_an_extreme():
    x = torch.tensor([[1.0, 3.0, 3.0, 0.0], [0.0, 0.0, 3.0, 0.0]])
    for function in (lambda y: y.amax(1), lambda y: y.amin(0), torch.max, torch.min):
        want, got = gradient(x, function)[0], gradient(x, function, "actnn")[0]
        assert torch.equal(got, want)
        assert want.count_nonzero() >= 2


def test_limits_that_are_tensors_keep_the_values_exactly():
    x, low = torch.randn(4, 6), torch.full((6,), -0.2, requires_grad=True)
    want = gradient(x, lambda y: y.clamp(low, low + 0.5))[0]
    got, stats = gradient(x, lambda y: y.clamp(low, low + 0.5), "actnn")
    assert torch.equal(got, want)
    assert {record.codec for record in stats.records} == {"exact"}


def test_max_of_two_tensors_or_along_an_axis_is_another_function():
    x = torch.randn(4, 6)
    for function in (lambda y: y.max(y.flip(0)), lambda y: torch.max(y, 1)[0], lambda y: y.max(dim=0).values):
        assert torch.equal(gradient(x, function, "actnn")[0], gradient(x, function)[0])


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("between", [F.relu6, F.leaky_relu, lambda y: y.amax(1, keepdim=True).expand_as(y), torch.abs])
def test_s13_bits_stay_beside_the_values_of_another_operation(between, first):
    """In either order each operation has its form, and the bytes of both are counted."""
    conv = nn.Conv2d(4, 4, 1)

    def function(y):
        return between(y) + conv(y) if first else conv(y) + between(y)

    x = torch.randn(2, 4, 8, 8)
    want = gradient(x, function)[0]
    for codec in (ExactCodec(), COMPANIONS):
        assert torch.equal(gradient(x, function, codec)[0], want)
    conv.requires_grad_(False)
    alone, conv_alone = gradient(x, between)[0], gradient(x, conv)[0]
    conv.requires_grad_(True)
    got, stats = gradient(x, function, "actnn", bits=2)
    torch.testing.assert_close(got, alone + conv_alone)
    record = stats.records[0]
    assert record.codec == "actnn"
    assert len(record.saved_by) == 2
    values_alone = gradient(x, conv, "actnn", bits=2)[1].records[0].bytes_compressed
    bits_alone = gradient(x, between, "actnn", bits=2)[1].records[0].bytes_compressed
    assert record.bytes_compressed == values_alone + bits_alone


def test_bits_are_not_kept_beside_what_is_exact_anyway():
    x = torch.randn(2, 4, 8, 8)
    stats = gradient(x, lambda y: y.log() + F.relu6(y), "actnn")[1]
    assert [(record.codec, record.bytes_compressed) for record in stats.records] == [("exact", x.numel() * 4)]


def test_three_users_of_one_tensor_have_what_they_need():
    """Signs, values, and then the tensor exactly."""
    conv, x = nn.Conv2d(4, 4, 1), torch.rand(2, 4, 8, 8) + 0.01

    def function(y):
        return F.hardtanh(y, 0.2, 0.7) + conv(y) + y.log()

    got, stats = gradient(x, function, "actnn", bits=2, compress_loss=True)
    torch.testing.assert_close(got, gradient(x, function)[0])
    (record,) = stats.records
    assert record.codec == "exact"
    assert record.bytes_compressed == x.numel() * 4 + x.numel() // 8 + 8
    assert record.saved_by == ("hardtanh", "conv", "log")


def test_double_backward_needs_no_values_either():
    for name, (function, limits, _) in FUNCTIONS.items():
        if "hardsigmoid" in name:  # torch has none
            continue
        x = values(limits, torch.float32, ())
        results = []
        for codec in (None, COMPANIONS):
            leaf = x.clone().requires_grad_()
            if codec is None:
                z = function(leaf * 1)
            else:
                with actcodec.compress_activations(EMPTY, codec):
                    z = function(leaf * 1)
            (first,) = torch.autograd.grad((z**3).sum(), leaf, create_graph=True)
            results.append(torch.autograd.grad(first.square().sum(), leaf)[0])
        assert torch.equal(*results), name


def test_a_policy_may_leave_companions_out():
    x = torch.randn(2, 4, 8, 8)
    got, stats = gradient(x, F.relu6, Policy((Rule("actnn"),), companions=False))
    assert torch.equal(got, gradient(x, F.relu6)[0])
    assert [record.codec for record in stats.records] == ["exact"]


def test_error_of_regions_is_none_of_their_business():
    stats = gradient(torch.randn(2, 4, 8, 8), F.relu6, COMPANIONS, measure_error=True)[1]
    assert [record.relative_error for record in stats.records] == [0.0]
