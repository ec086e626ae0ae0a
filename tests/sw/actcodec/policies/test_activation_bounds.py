"""Bounds of operations without weights: saved tensors get errors of the allowed size, which use a part of e**2 * V**2."""

import pytest
import torch
from actcodec.policies.bounds.norm_bounds import group_norm_demand, rms_norm_demand
from actcodec.policies.bounds.pointwise_bounds import STEEPNESS, pointwise_demand_of
from actcodec.policies.bounds.scalar_bounds import factor_demand, largest_error
from layers_for_bounds import normal
from torch.autograd.graph import saved_tensors_hooks
from torch.nn import functional as F

GROWTH, DRAWS = 0.5, 30


def unit_errors(shape, seed):
    random = torch.Generator().manual_seed(seed)
    return (2 * torch.rand(shape, generator=random, dtype=torch.float64) - 1) * 3**0.5


def used(gradient_with, shape, error):
    """Return the mean squared error of a gradient over uniform errors of that RMS, relative to the allowed one."""
    exact = gradient_with(None)
    total = sum(float((gradient_with(float(error) * unit_errors(shape, n)) - exact).square().sum()) for n in range(DRAWS))
    return total / DRAWS / (GROWTH * float(exact.square().sum()))


#: Function, deviation of x, and the factor by which the bound is loose at most.
FUNCTIONS = {
    "gelu": (F.gelu, 1.0, 3),
    "gelu, large": (F.gelu, 3.0, 10),
    "gelu, tanh": (lambda x: F.gelu(x, approximate="tanh"), 1.0, 3),
    "silu": (F.silu, 1.0, 3),
    "mish": (F.mish, 1.0, 4),
    "softplus": (lambda x: F.softplus(x, 3.0), 1.0, 5),
    "logsigmoid": (F.logsigmoid, 1.0, 4),
    "exp": (torch.exp, 1.0, 1.1),
    "square": (torch.square, 1.0, 1.1),
    "cube": (lambda x: x**3, 1.0, 6),
    "tanh": (torch.tanh, 1.0, 10),
    "tanh, small": (torch.tanh, 0.1, 500),
    "sigmoid": (torch.sigmoid, 1.0, 8),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_of_single_values(name):
    """The allowed error is used up to the factor in the table, which is large if the slope is seldom as steep as it can be."""
    run, spread, loose = FUNCTIONS[name]
    x, g = spread * normal(6, 50), normal(6, 50, seed=2)

    def gradient_with(error):
        leaf = x.clone().requires_grad_()
        kept = []

        def pack(saved):
            kept.append(saved.shape)
            # Log sigmoid saves an intermediate result beside x, which the plug-in keeps exactly.
            return saved if error is None or len(kept) > 1 else saved + error

        with saved_tensors_hooks(pack, lambda saved: saved):
            y = run(leaf)
        return torch.autograd.grad(y, leaf, g)[0]

    demand = pointwise_demand_of(run(x.clone().requires_grad_()).grad_fn)(g, gradient_with(None))
    error = largest_error(demand, GROWTH)
    part = used(gradient_with, x.shape, error)
    # A slope that is the same everywhere uses all of it, up to the scatter of the draws.
    assert 1 / loose < part < (1.1 if name in ("exp", "square") else 1)


def test_steepness_is_the_greatest_second_derivative():
    x = torch.linspace(-12, 12, 240_001, dtype=torch.float64, requires_grad=True)
    for run in (F.gelu, lambda x: F.gelu(x, approximate="tanh"), F.silu, F.mish, F.logsigmoid):
        y = run(x)
        (slope,) = torch.autograd.grad(y.sum(), x, create_graph=True)
        (second,) = torch.autograd.grad(slope.sum(), x)
        assert float(second.abs().max()) == pytest.approx(STEEPNESS[y.grad_fn.name()], rel=1e-4)
        assert float(second.abs().max()) <= STEEPNESS[y.grad_fn.name()] * (1 + 1e-12)


@pytest.mark.parametrize("independent", [False, True])
@pytest.mark.parametrize(("n", "k", "m"), [(7, 5, 9), (16, 4, 16), (3, 32, 3)])
def test_products_of_matrices(n, k, m, independent):
    """Independent errors use all of it; any errors 1 / S of it, and all of it when they conspire."""
    g = normal(3, n, m, seed=2)
    of_b = normal(3, n, k).transpose(1, 2) @ g
    error = largest_error(factor_demand(g, of_b, k, independent=independent), GROWTH)
    part = used(lambda d: of_b if d is None else of_b + d.transpose(1, 2) @ g, (3, n, k), error)
    assert part == pytest.approx(1 if independent else 1 / n, rel=0.35)
    u, v, w = (normal(size, seed=size + 7).sign() for size in (n, m, k))
    flat = (u[:, None] * v).expand(3, n, m)
    error = largest_error(factor_demand(flat, of_b, k), GROWTH).double()
    found = ((error * w[:, None] * u).expand(3, k, n) @ flat).square().sum() / (GROWTH * of_b.square().sum())
    assert float(found) == pytest.approx(1, rel=1e-5)


@pytest.mark.parametrize("independent", [False, True])
def test_products_of_values(independent):
    """A gate of the same shape, and one that a row shares."""
    for shape in ((8, 20), (8, 1)):
        x, g = normal(8, 20), normal(8, 20, seed=2)

        def of_gate(error, x=x, g=g, shape=shape):
            return (g * (x if error is None else x + error)).sum_to_size(shape)

        error = largest_error(factor_demand(g, of_gate(None), 1, independent=independent), GROWTH)
        terms = 20 // shape[1]
        assert used(of_gate, x.shape, error) == pytest.approx(1 if independent else 1 / terms, rel=0.3)


NORMS = {
    "group norm": lambda x, w: F.group_norm(x, 4, w),
    "instance norm": lambda x, w: F.group_norm(x, 8, w),
    "rms norm": lambda x, w: F.rms_norm(x, (8,), w, 1e-5),
}


@pytest.mark.parametrize("independent", [False, True])
@pytest.mark.parametrize("name", NORMS)
def test_normalisations(name, independent):
    """Errors in all places where x is saved; also along the gradient, of which at least a third is used by small ones."""
    run, rms = NORMS[name], name == "rms norm"
    x = normal(6, 9, 8) if rms else 3 * normal(6, 8, 5, 5) + 1
    w, g = normal(8, seed=1), normal(*x.shape, seed=2)
    groups = {"group norm": 4, "instance norm": 8}.get(name, 1)
    rows = x.reshape(-1, 8) if rms else x.reshape(6 * groups, -1)
    sigma = ((rows.square().mean(1) if rms else rows.var(1, correction=0)) + 1e-5).sqrt()

    def gradient_with(error):
        leaf = x.clone().requires_grad_()

        def pack(saved):
            return saved if error is None or saved.data_ptr() != leaf.data_ptr() else saved + error

        with saved_tensors_hooks(pack, lambda saved: saved):
            y = run(leaf, w)
        return torch.autograd.grad(y, leaf, g)[0]

    exact = gradient_with(None)
    demand = (rms_norm_demand if rms else group_norm_demand)(g, exact, sigma, w, independent=independent)
    assert used(gradient_with, x.shape, largest_error(demand, GROWTH)) < 1
    if not independent:
        # Errors along h in each row have only the second part, and 1/2 of the allowance for both parts.
        h = g * w if rms else g * w[:, None, None]
        flat = h.reshape(rows.shape)
        error = 1e-5 * (flat / flat.square().mean(1, keepdim=True).sqrt()).view(x.shape)
        found = float((gradient_with(error) - exact).square().sum())
        assert float(demand.weight) * 1e-10 / 5 < found < float(demand.weight) * 1e-10
