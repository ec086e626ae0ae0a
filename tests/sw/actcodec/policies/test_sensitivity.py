"""Sensitivity against the variance that is measured on torch's own gradients."""

import pytest
import torch
from actcodec.codecs.actnn.sample_groups import ActnnSampleCodec
from actcodec.policies.budget.sensitivity import GradientHistory, check_samples, parameter_kind, share, squared_norms
from actcodec.saved.operations import OperationTracker
from cdu_spec import UserError
from torch.nn import functional as F

DRAWS, BITS = 60, 3


def measured_and_predicted(x, operation, weight, g):
    """Variance of the weight's gradient over draws, summed over the weight, and the sum of ``w_n / B**2``.

    ``operation(x, weight)`` is linear in each of the two; the gradient for a reconstruction is that of the operation on it.
    """
    seen = []
    weight = weight.clone().requires_grad_()
    with OperationTracker(lambda op, result: seen.append((op, result))):
        output = operation(x, weight)
    running, result = seen[-1]
    assert result is output
    codec = ActnnSampleCodec(bits=BITS, group=64)

    def gradient(values):
        return torch.autograd.grad(operation(values, weight), weight, g)[0].double()

    drawn, exact = torch.stack([gradient(codec.compress(x).decompress()) for _ in range(DRAWS)]), gradient(x)
    # Unbiased: the mean is the exact gradient within five deviations.
    deviation = (drawn - exact).square().sum().sqrt() / DRAWS
    assert (drawn.mean(0) - exact).norm() < 1.5 * deviation
    measured = float((drawn - exact).square().sum() / DRAWS)
    samples = len(x)
    part = share(running, x.numel() // samples, output.numel() // samples)
    weights = part * squared_norms(g, samples) * codec.compress(x).unit_variance
    return measured, float(weights.sum()) / (2**BITS - 1) ** 2


def tensor(*shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def even(*shape):
    """Values spread evenly over their range, for which 1/6 is the mean of p (1 - p)."""
    return torch.rand(shape, generator=torch.Generator().manual_seed(5))


LINEAR = {
    "linear": (even(12, 64), F.linear, tensor(10, 64), (12, 10)),
    "linear, tokens": (even(6, 9, 32), F.linear, tensor(10, 32), (6, 9, 10)),
    "addmm": (even(12, 64), lambda x, w: torch.addmm(torch.zeros(10), x, w), tensor(64, 10), (12, 10)),
    "matmul": (even(12, 64), lambda x, w: x @ w, tensor(64, 10), (12, 10)),
    "rmatmul": (even(4, 32, 8), lambda x, w: w @ x, tensor(10, 32), (4, 10, 8)),
    "conv": (even(6, 4, 12, 12), lambda x, w: F.conv2d(x, w), tensor(5, 4, 3, 3), (6, 5, 10, 10)),
    "conv, 1x1": (even(6, 4, 12, 12), F.conv2d, tensor(5, 4, 1, 1), (6, 5, 12, 12)),
    "conv, stride": (even(6, 4, 13, 13), lambda x, w: F.conv2d(x, w, stride=2), tensor(5, 4, 3, 3), (6, 5, 6, 6)),
    "conv, groups": (even(6, 4, 12, 12), lambda x, w: F.conv2d(x, w, groups=2), tensor(6, 2, 3, 3), (6, 6, 10, 10)),
    "conv1d": (even(6, 4, 64), F.conv1d, tensor(5, 4, 5), (6, 5, 60)),
    "transposed": (even(6, 4, 8, 8), lambda x, w: F.conv_transpose2d(x, w, stride=2), tensor(4, 5, 3, 3), (6, 5, 17, 17)),
}


@pytest.mark.parametrize("name", LINEAR)
def test_variance_of_a_weights_gradient(name):
    x, operation, weight, out = LINEAR[name]
    measured, predicted = measured_and_predicted(x, operation, weight, tensor(*out, seed=2))
    # At the edges of a map values take part in fewer products; there the estimate is from above.
    assert 0.8 < measured / predicted < 1.15


def test_linear_layers_are_the_papers_formula():
    """Exact for any variances: samples of very different ranges and gradients."""
    x = even(8, 64) * 10.0 ** torch.arange(-4.0, 4.0)[:, None]
    g = tensor(8, 10, seed=2) * 10.0 ** torch.tensor([3.0, -2, 1, 0, -1, 2, -3, 0])[:, None]
    measured, predicted = measured_and_predicted(x, F.linear, tensor(10, 64), g)
    assert 0.85 < measured / predicted < 1.15
    codec = ActnnSampleCodec(bits=BITS, group=64)
    extent = codec.compress(x).extent.double()
    paper = 64 / 6 * g.double().square().sum(1) * extent.square().sum(1)
    torch.testing.assert_close(squared_norms(g, 8) * codec.compress(x).unit_variance, paper)


@pytest.mark.parametrize("kind", ["batch", "layer"])
def test_variance_of_a_gammas_gradient(kind):
    """Exact statistics are kept: the reconstruction of x is normalised with those of x."""
    x = (even(16, 4, 8, 8) * torch.tensor([1.0, 5.0, 0.2, 2.0])[:, None, None]) if kind == "batch" else even(16, 64)
    axes, shape = ((0, 2, 3), (1, 4, 1, 1)) if kind == "batch" else ((1,), (1, 64))
    mean, deviation = x.mean(axes, keepdim=True), x.std(axes, correction=0, keepdim=True)
    gamma = torch.ones(shape[1])
    seen = []
    with OperationTracker(lambda op, result: seen.append(op)):
        if kind == "batch":
            F.batch_norm(x, None, None, gamma, None, training=True)
        else:
            F.layer_norm(x, (64,), gamma)
    g = tensor(*x.shape, seed=3)
    codec = ActnnSampleCodec(bits=BITS, group=64)  # groups within one channel, so that ranges follow its deviation

    def gradient(values):
        return (g * (values - mean) / deviation).double().sum([axis for axis in range(x.ndim) if axis != 1])

    exact = gradient(x)
    draws = torch.stack([gradient(codec.compress(x).decompress()) - exact for _ in range(DRAWS)])
    measured = float(draws.square().sum() / DRAWS)
    values = x.numel() // 16
    weights = share(seen[0], values, values) * squared_norms(g, 16) * codec.compress(x).unit_variance
    assert parameter_kind(seen[0]) == "gammas"
    assert 0.7 < measured / (float(weights.sum()) / (2**BITS - 1) ** 2) < 1.4


def test_kinds():
    seen = []
    x, weight = torch.randn(2, 4), torch.randn(3, 4)
    with OperationTracker(lambda op, result: seen.append(op)):
        torch.tanh(F.linear(x, weight))
    assert [parameter_kind(op) for op in seen] == ["weights", "none"]
    assert share(seen[1], 3, 3) == 1 / 3


def test_norms_of_transposed_results_are_split_evenly():
    g = tensor(5, 3)
    torch.testing.assert_close(squared_norms(g, 5), g.double().square().sum(1))
    torch.testing.assert_close(squared_norms(g, 2), (g.double().square().sum() / 2).expand(2))
    torch.testing.assert_close(squared_norms(torch.tensor(3.0), 2), torch.tensor([4.5, 4.5], dtype=torch.float64))


def doubles(*values):
    return torch.tensor(values, dtype=torch.float64)


def test_stale_gradients_are_the_samples_own_or_the_layers_mean():
    history = GradientHistory(0.0)
    assert not history.known
    history.update(doubles(1, 2, 3), torch.tensor([10, 5, 0]))
    assert history.of(torch.tensor([5, 0, 7, 4000]), 4).tolist() == [2, 3, 2, 2]
    history.update(doubles(8, 8), torch.tensor([5, 4000]))
    assert history.of(torch.tensor([5, 10, 3, 4000]), 4).tolist() == [8, 1, 8, 8]
    assert history.of(None, 2).tolist() == [8, 8]


def test_moving_average():
    history = GradientHistory(0.75)
    history.update(doubles(4, 8), torch.tensor([0, 1]))
    history.update(doubles(8, 16), torch.tensor([0, 2]))
    assert history.of(torch.tensor([0, 1, 2, 3]), 4).tolist() == [5, 8, 16, 0.75 * 6 + 0.25 * 12]


@pytest.mark.parametrize("norm", [float("inf"), float("nan"), 1e39])  # the last one is beyond float32
def test_infinite_gradients_and_foreign_shapes_teach_nothing_of_samples(norm):
    history = GradientHistory(0.0)
    history.update(doubles(norm, 1), torch.tensor([0, 1]))
    assert not history.known
    history.update(doubles(2, 4, 6, 8), torch.tensor([0, 1]))
    assert history.of(torch.tensor([0, 1]), 2).tolist() == [5, 5]


@pytest.mark.parametrize(
    "samples", [torch.ones(3), torch.tensor([True]), torch.ones(2, 2, dtype=torch.int64), torch.tensor([-1])]
)
def test_bad_numbers_of_samples(samples):
    with pytest.raises(UserError, match="give their places in the data set"):
        check_samples(samples)
