"""AC-GC's bounds against gradients that torch computes from activations with errors of exactly the size that is allowed."""

import pytest
import torch
from actcodec.policies.bounds import scalar_bounds as bounds
from layers_for_bounds import Layer, batch_norm, layers, normal, product
from torch.nn import functional as F

DRAWS, GROWTH = 40, 0.5
LAYERS = layers()
PRODUCTS = [name for name, layer in LAYERS.items() if layer.of_weight]


def spread(layer: Layer, error: torch.Tensor) -> torch.Tensor:
    """The error of each value, broadcastable to x."""
    error = error.double()
    return error.view(-1, *[1] * (layer.x.ndim - 2)) if len(error) > 1 else error


def measured(layer: Layer, error: torch.Tensor, kind: str) -> float:
    """Mean squared error of the gradient over draws of independent errors with that RMS, in units of ``e**2 * V**2``."""
    random = torch.Generator().manual_seed(4)
    total = 0.0
    for _ in range(DRAWS):
        drawn = torch.rand(layer.x.shape, generator=random, dtype=torch.float64)
        unit = (2 * drawn - 1) * 3**0.5 if kind == "uniform" else (drawn - 0.5).sign()
        total += layer.squared_error(spread(layer, error) * unit)
    return total / DRAWS / layer.allowed(GROWTH)


@pytest.mark.parametrize("independent", [False, True])
@pytest.mark.parametrize("name", LAYERS)
def test_uniform_errors_of_the_allowed_size_keep_the_bound(name, independent):
    layer = LAYERS[name]
    error = bounds.largest_error(layer.demand(independent=independent), GROWTH)
    assert measured(layer, error, "uniform") < 1
    if not independent:
        # Errors of one sign everywhere do not average out. (An even shift of what is normalised would be none.)
        shape = layer.x.shape
        pattern = layer.g.sign() if layer.g.shape == shape else torch.ones(shape, dtype=torch.float64)
        assert layer.squared_error(spread(layer, error) * pattern) < layer.allowed(GROWTH)


@pytest.mark.parametrize("name", PRODUCTS)
def test_errors_that_average_out(name):
    """The bound for errors of any kind is too strict for them by the number of products that add up; the other one by 2."""
    layer = LAYERS[name]
    any_kind, independent = layer.demand(), layer.demand(independent=True)
    averaged = float(any_kind.weight / independent.weight)
    for demand, expected in ((any_kind, 0.5 / averaged), (independent, 0.5)):
        found = measured(layer, bounds.largest_error(demand, GROWTH), "signs")
        # At the edges of maps values are read less often than on average.
        assert 0.75 * expected < found < 1.1 * expected


def test_the_linear_bound_is_reached_and_the_constant_two_breaks_it():
    """Errors along the gradient's direction, evenly spread, use half of the allowance with k = 1/2, twice as much with 2."""
    u, v, w = (normal(n, seed=n).sign() for n in (32, 10, 24))
    layer = product(F.linear, normal(32, 24), normal(10, 24, seed=1), u[:, None] * v, 32)
    for constant in (0.5, 2.0):
        error = bounds.largest_error(layer.demand(constant=constant), GROWTH).double()
        found = layer.squared_error(error * u[:, None] * w) / layer.allowed(GROWTH)
        assert found == pytest.approx(constant, rel=1e-6)


def test_the_convolutions_constant_two_breaks_the_bound():
    x, weight, out = normal(4, 3, 40, 40), normal(5, 3, 3, 3, seed=1), torch.ones(4, 5, 38, 38, dtype=torch.float64)
    layer = product(F.conv2d, x, weight, out, 4 * 38 * 38, reach=9.0)
    for constant, least, most in ((0.5, 0.45, 0.5), (2.0, 1.8, 2.0)):
        error = bounds.largest_error(layer.demand(constant=constant), GROWTH).double()
        assert least < layer.squared_error(error.expand(x.shape)) / layer.allowed(GROWTH) < most


def test_several_convolutions_that_read_one_tensor():
    """The sum of their squared errors stays within the sum of the allowances; one of them alone may exceed its own part."""
    x = normal(8, 4, 12, 12) + 1
    first = product(lambda x, w: F.conv2d(x, w, padding=1), x, normal(5, 4, 3, 3), normal(8, 5, 12, 12, seed=2), 1152, 9.0)
    loud = product(F.conv2d, x, normal(6, 4, 1, 1), 1 + normal(8, 6, 12, 12, seed=3), 1152, 1.0)
    for independent in (False, True):
        demands = [layer.demand(independent=independent) for layer in (first, loud)]
        error = bounds.largest_error(bounds.together(demands), GROWTH).double()
        total = first.weight.new_zeros(())
        for layer in (first, loud):
            total += measured(layer, error, "uniform") * layer.allowed(GROWTH)
        assert total < first.allowed(GROWTH) + loud.allowed(GROWTH)
    assert measured(first, error, "uniform") > 1
    assert float(error) > float(bounds.largest_error(demands[0], GROWTH))


def test_batch_norm_in_the_papers_terms():
    """Against the formula as printed, with torch's own gradient of gamma."""
    for name in ("batch norm", "batch norm into ReLU"):
        layer = LAYERS[name]
        x, gamma = layer.x.clone().requires_grad_(), layer.weight.clone().requires_grad_()
        dx, dgamma = torch.autograd.grad(layer.run(x, gamma), (x, gamma), layer.g)
        axes, (n, channels, height, width) = (0, 2, 3), layer.x.shape
        sigma = (layer.x.var(axes, correction=0) + 1e-5).sqrt()
        nnz, most = (layer.g != 0).sum(axes), layer.g.abs().amax(axes)
        g2 = dgamma**2 + sigma**-2 * nnz**2 * most**2 * (layer.x.abs().amax(axes) / 2) ** 2
        paper = GROWTH * dx.square().sum() * n * height * width * sigma**4 / (channels * layer.weight**2 * g2)
        expected = paper.sqrt().minimum(sigma).float()
        torch.testing.assert_close(bounds.largest_error(layer.demand(), GROWTH), expected, rtol=1e-4, atol=0)


def test_the_papers_batch_norm_bound_breaks_for_two_valued_channels():
    """``max|x| / 2`` replaces the normalised input's norm, but is half of it where all magnitudes are sigma.

    Found: four times the error that is allowed, with errors of one kind; with independent ones far below.
    """
    pattern = torch.tensor([[1.0, 1, -1, -1], [1, -1, 1, -1]], dtype=torch.float64).repeat(1, 4).view(2, 1, 1, 16)
    x, g = pattern[0].expand(4, 3, 1, 16).clone(), pattern[1].expand(4, 3, 1, 16).clone()
    layer = batch_norm(x, torch.ones(3, dtype=torch.float64), g)
    small = bounds.largest_error(layer.demand(), GROWTH * 1e-4).double()
    found = layer.squared_error(spread(layer, small) * g.sign()) / layer.allowed(GROWTH * 1e-4)
    assert found == pytest.approx(4, rel=1e-2)
    assert measured(layer, bounds.largest_error(layer.demand(independent=True), GROWTH), "signs") < 1


def test_errors_beyond_sigma_break_what_is_linear():
    """Normalisation needs a limit: without it independent errors add far more than the formula predicts."""
    layer = LAYERS["batch norm"]
    demand = layer.demand(independent=True)
    unlimited = bounds.Demand(demand.variance, demand.weight, torch.full_like(demand.limit, torch.inf))
    assert measured(layer, bounds.largest_error(unlimited, GROWTH), "uniform") > 3
    assert measured(layer, bounds.largest_error(demand, GROWTH), "uniform") < 1


def test_layer_norm_against_its_derivation():
    """Errors along h in each row: the second term alone, exactly; small, because the bound is about small ones."""
    layer = LAYERS["layer norm, unequal rows"]
    h = layer.g * layer.weight
    sigma = (layer.x.var(2, correction=0, keepdim=True) + 1e-5).sqrt()
    y = (layer.x - layer.x.mean(2, keepdim=True)) / sigma
    d, tiny = 24, 1e-6
    error = tiny * h / h.square().mean(2, keepdim=True).sqrt()
    along, across = (h * y).sum(2, keepdim=True), (h * error).sum(2, keepdim=True)
    change = -(error / sigma * along / d + y * across / sigma / d) / sigma
    exact = layer.gradient(error) - layer.gradient()
    torch.testing.assert_close(exact, change, rtol=1e-3, atol=1e-9)
    demand = layer.demand()
    assert float(exact.square().sum()) <= tiny**2 * float(demand.weight) < 3 * float(exact.square().sum())


def test_limits_of_an_error():
    one = torch.ones(1, dtype=torch.float64)
    none, inf = torch.zeros((), dtype=torch.float64), one * torch.inf

    def error(variance, weight):
        return float(bounds.largest_error(bounds.Demand(variance, weight, inf)))

    assert error(one[0], one) == pytest.approx(0.5**0.5)
    assert error(none, one) == error(one[0] * 1e-30, one) == 2.0**-16
    assert error(one[0], one * 0) == error(none, one * 0) == 2.0**60
    assert not bounds.Demand(none, one * 0, inf).finite
    assert not bounds.Demand(none + torch.nan, one, inf).finite
    assert bounds.Demand(none, one, inf).finite


def test_mean_of_a_window():
    of_steps = ((2.0, [1.0, 6.0], [4.0, 3.0]), (4.0, [3.0, 4.0], [1.0, 5.0]))
    demands = [bounds.Demand(*(torch.tensor(part) for part in parts)) for parts in of_steps]
    mean = bounds.mean_demand(demands)
    assert (float(mean.variance), mean.weight.tolist(), mean.limit.tolist()) == (3.0, [2.0, 5.0], [1.0, 3.0])
