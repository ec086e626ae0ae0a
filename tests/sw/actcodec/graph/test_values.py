"""Compiled graphs: what a backward reads is what the format gives back eagerly, to the last bit, and losses do not change."""

from __future__ import annotations

import pytest
import torch
from actcodec.graph.format import FLOATS
from actcodec.graph.formats import FORMATS, format_of, layout_of
from compiled_steps import Found, found
from torch import Tensor, nn
from torch.nn import functional as F

NAMES = [name for name in FORMATS if name != "bits" and not name.startswith("windows")]
KEEP = "keep"


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


def weighed(name: str, shape: str, dtype: torch.dtype, scale: float = 1.0) -> Found:
    def make() -> nn.Module:
        if shape == "tokens":
            return Weighed(nn.Linear(32, 96), (3, 32, 96), dtype)
        return Weighed(nn.Conv2d(3, 64, 1), (2, 64, 8, 8), dtype)

    def steps(model: nn.Module) -> list[Tensor]:
        x = torch.randn((3, 32, 32) if shape == "tokens" else (2, 3, 8, 8))
        loss = model((x * torch.exp(x)).to(dtype)).float().sum()
        (loss * scale).backward()
        return [loss]

    return found(make, steps, name)


@pytest.fixture(scope="module")
def kept():
    """What is kept as it is, by shape and number format."""
    return {(shape, dtype): weighed(KEEP, shape, dtype) for shape in ("tokens", "maps") for dtype in FLOATS}


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("shape", ["tokens", "maps"])
@pytest.mark.parametrize("name", NAMES)
def test_what_is_kept_is_what_the_format_gives_back(kept, name, shape, dtype):
    exact = kept[shape, dtype]
    value, form = exact.gradients["weight"], format_of(name)
    got = weighed(name, shape, dtype)
    assert torch.equal(got.losses[0], exact.losses[0])
    assert got.coded == form.fits(value)
    want = form.unpack(form.pack(value), layout_of(value)) if form.fits(value) else value
    assert torch.equal(got.gradients["weight"], want)
    assert torch.equal(want, value) == (not form.fits(value))


@pytest.mark.parametrize("exact_casts", [False, True])
def test_products_of_bfloat16_leave_out_one_rounding_unless_inductor_is_told(exact_casts):
    """Without it a product is that of the number before its rounding to bfloat16."""
    dtype = torch.bfloat16
    value, form = weighed(KEEP, "tokens", dtype).gradients["weight"], format_of("int8")
    want = form.unpack(form.pack(value), layout_of(value)) * 3
    with torch._inductor.config.patch(emulate_precision_casts=exact_casts):
        got = weighed("int8", "tokens", dtype, scale=3.0).gradients["weight"]
    assert torch.equal(got, want) == exact_casts
    torch.testing.assert_close(got, want, rtol=2 * torch.finfo(dtype).eps, atol=0.0)


class Shared(nn.Module):
    """A value that a product and operations on single values read, so that it is decoded at several places."""

    def __init__(self, dtype: torch.dtype) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(128, 128, dtype=dtype), nn.Linear(128, 128, dtype=dtype)

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
        rows = gradient.flatten(0, -2)
        return gradient @ weight + 2 * gradient * stored, None, rows.t() @ stored.flatten(0, -2), rows.sum(0)


@pytest.mark.parametrize("name", NAMES)
def test_gradients_are_those_of_eager_functions_that_store_the_codes(name):
    """Products of matrices get the same bits; sums are rounded in another order."""
    got = found(lambda: Shared(torch.float32), steps_of_shared(torch.float32), name)
    torch.manual_seed(0)
    model = Shared(torch.float32)
    torch.manual_seed(1)
    x = inputs_of_shared(torch.float32)
    h, stored = _Stored.apply(model.first(x), name)
    loss = _Product.apply(h, stored, model.second.weight, model.second.bias).square().mean()
    loss.backward()
    assert got.coded >= 1
    for key, parameter in model.named_parameters():
        torch.testing.assert_close(got.gradients[key], parameter.grad, rtol=1e-4, atol=1e-6)


def inputs_of_shared(dtype: torch.dtype) -> Tensor:
    return torch.randn(4, 32, 128).to(dtype)


def steps_of_shared(dtype: torch.dtype, factor: float = 1.0):
    def steps(model: nn.Module) -> list[Tensor]:
        loss = model(inputs_of_shared(dtype)).float().square().mean()
        (loss * factor).backward()
        return [loss]

    return steps


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", ["int8", "int4-group", "nvfp4", "sfpr", "mxfp8-e4m3"])
@pytest.mark.parametrize("factor", [float("inf"), float("nan")])
def test_gradients_that_are_not_finite_arrive(name, dtype, factor):
    """A gradient of a scaler's infinite loss is not finite where that of kept values is not, whatever a scale is."""
    exact = found(lambda: Shared(dtype), steps_of_shared(dtype, factor), KEEP)
    got = found(lambda: Shared(dtype), steps_of_shared(dtype, factor), name)
    assert torch.equal(got.losses[0], exact.losses[0])
    for key, gradient in exact.gradients.items():
        assert not gradient.isfinite().any()
        assert not got.gradients[key].isfinite().any()


@pytest.mark.parametrize("name", ["int8", "int4-group", "nvfp4", "sfpr", "mxfp8-e4m3"])
@pytest.mark.parametrize("bad", [float("inf"), float("nan")])
def test_values_that_are_not_finite_reach_the_gradients(name, bad):
    def steps(model: nn.Module) -> list[Tensor]:
        x = torch.randn(3, 32, 32)
        x[1, 2, 3] = bad
        loss = model(x).sum()
        loss.backward()
        return [loss]

    got = found(lambda: Weighed(nn.Linear(32, 96), (3, 32, 96), torch.float32), steps, name)
    assert not got.losses[0].isfinite()
    assert not got.gradients["weight"][1, 2].isfinite().any()
