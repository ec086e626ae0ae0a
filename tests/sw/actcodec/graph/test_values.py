"""Compiled graphs: what a backward reads is what the format gives back eagerly, to the last bit, and losses do not change."""

from __future__ import annotations

import pytest
import torch
from actcodec.graph.choices import KEEP
from actcodec.graph.formats import format_of, layout_of
from graph_steps import Found, Steps, found
from torch import Tensor, nn
from torch.nn import functional as F

#: Formats of each kind. test_formats.py compiles all of them.
NAMES = ("int8", "int4-columns", "nvfp4", "brc")
#: Further ones for campaigns, of which one does not suit this shape.
MORE_NAMES = ("int16", "int5", "int4-group", "mxint8", "mxfp8-e4m3", "mxfp4", "sfpr")


class Weighed(nn.Module):
    """An operation's results, each times a weight: the gradient of their sum by the weight is the result, as it was kept.

    The sum is made outside: inductor may add up in another order in a kernel that packs what it adds up.
    """

    def __init__(self, operation: nn.Module, shape: tuple[int, ...], dtype: torch.dtype) -> None:
        super().__init__()
        self.operation = operation.to(dtype)
        self.weight = nn.Parameter(torch.randn(shape, dtype=dtype))

    def forward(self, x: Tensor) -> Tensor:
        """Return the products."""
        return self.operation(x) * self.weight


def weighed(name: str, dtype: torch.dtype, scale: float = 1.0) -> Found:
    def steps(model: nn.Module) -> list[Tensor]:
        x = torch.randn(3, 32, 32)
        loss = model((x * torch.exp(x)).to(dtype)).float().sum()
        (loss * scale).backward()
        return [loss]

    return found(lambda: Weighed(nn.Linear(32, 96), (3, 32, 96), dtype), steps, name)


@pytest.fixture(scope="module")
def kept():
    """Return the values that are kept as they are, by number format."""
    return {dtype: weighed(KEEP, dtype) for dtype in (torch.float32, torch.bfloat16)}


@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        *((name, torch.float32) for name in NAMES),
        ("int8", torch.bfloat16),
        *(pytest.param(name, torch.float32, marks=pytest.mark.campaign) for name in MORE_NAMES),
        pytest.param("nvfp4", torch.bfloat16, marks=pytest.mark.campaign),
    ],
)
def test_what_is_kept_is_what_the_format_gives_back(kept, name, dtype):
    exact = kept[dtype]
    value, form = exact.gradients["weight"], format_of(name)
    got = weighed(name, dtype)
    assert torch.equal(got.losses[0], exact.losses[0])
    assert got.coded == form.fits(value)
    want = form.unpack(form.pack(value), layout_of(value)) if form.fits(value) else value
    assert torch.equal(got.gradients["weight"], want)
    assert torch.equal(want, value) == (not form.fits(value))


def test_products_of_bfloat16_leave_out_one_rounding_unless_inductor_is_told(kept):
    """Without it a product is that of the number before its rounding to bfloat16."""
    dtype = torch.bfloat16
    value, form = kept[dtype].gradients["weight"], format_of("int8")
    want = form.unpack(form.pack(value), layout_of(value)) * 3
    for exact_casts in (False, True):
        with torch._inductor.config.patch(emulate_precision_casts=exact_casts):
            got = weighed("int8", dtype, scale=3.0).gradients["weight"]
        assert torch.equal(got, want) == exact_casts
        torch.testing.assert_close(got, want, rtol=2 * torch.finfo(dtype).eps, atol=0.0)


class Shared(nn.Module):
    """A value that a product and operations on single values read, so that it is decoded at several places."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(128, 128), nn.Linear(128, 128)

    def forward(self, x: Tensor) -> Tensor:
        """Return the sum of both."""
        h = self.first(x)
        return self.second(h) + h * h


class _Stored(torch.autograd.Function):
    """A value, and what a format makes of it for the backward."""

    @staticmethod
    def forward(ctx, h, name):
        form = format_of(name)
        return h.clone(), form.unpack(form.pack(h), layout_of(h))

    @staticmethod
    def backward(ctx, gradient, _):
        return gradient, None


class _Product(torch.autograd.Function):
    """``second(h) + h * h``, with gradients from what was stored."""

    @staticmethod
    def forward(ctx, h, stored, weight, bias):
        ctx.save_for_backward(stored, weight)
        return F.linear(h, weight, bias) + h * h

    @staticmethod
    def backward(ctx, gradient):
        stored, weight = ctx.saved_tensors
        return gradient @ weight + 2 * gradient * stored, None, gradient.t() @ stored, gradient.sum(0)


@pytest.mark.parametrize("name", ["int8", "sfpr"])
def test_gradients_are_those_of_eager_functions_that_store_the_codes(name):
    """Products of matrices get the same bits; sums are rounded in another order."""
    got = found(Shared, steps_of_shared(), name)
    torch.manual_seed(0)
    model = Shared()
    torch.manual_seed(1)
    h, stored = _Stored.apply(model.first(torch.randn(2048, 128)), name)
    loss = _Product.apply(h, stored, model.second.weight, model.second.bias).square().mean()
    loss.backward()
    assert got.coded == 1
    for key, parameter in model.named_parameters():
        torch.testing.assert_close(got.gradients[key], parameter.grad, rtol=1e-4, atol=1e-6)


def steps_of_shared(*factors: float) -> Steps:
    """Return a step, and one more for each factor of the loss; gradients of the last one stay."""

    def steps(model: nn.Module) -> list[Tensor]:
        losses = []
        for factor in (1.0, *factors):
            model.zero_grad()
            losses.append(model(torch.randn(2048, 128)).square().mean())
            (losses[-1] * factor).backward()
        return losses

    return steps


@pytest.mark.parametrize("name", ["int8", "sfpr"])
def test_gradients_that_are_not_finite_arrive(name):
    """A gradient of a scaler's infinite loss is not finite, whatever a scale is."""
    for factor in (float("inf"), float("nan")):
        got = found(Shared, steps_of_shared(factor), name)
        assert got.coded >= 1
        assert len(got.gradients) == 4
        assert not any(gradient.isfinite().any() for gradient in got.gradients.values())


@pytest.mark.parametrize("name", ["int8", "nvfp4", "sfpr"])
def test_values_that_are_not_finite_reach_the_gradients(name):
    def steps(model: nn.Module) -> list[Tensor]:
        x = torch.randn(3, 32, 32)
        x[0, 1, 2], x[1, 2, 3] = float("inf"), float("nan")
        loss = model(x).sum()
        loss.backward()
        return [loss]

    got = found(lambda: Weighed(nn.Linear(32, 96), (3, 32, 96), torch.float32), steps, name)
    assert got.coded == 1
    assert not got.losses[0].isfinite()
    assert not got.gradients["weight"][0, 1].isfinite().any()
    assert not got.gradients["weight"][1, 2].isfinite().any()
