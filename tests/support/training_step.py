"""One training step of a user's model, with and without compression."""

import copy
from collections.abc import Callable
from dataclasses import dataclass

import actcodec
import pytest
import torch
from actcodec.training import Statistics
from torch import Tensor, nn

#: Policies of 8 bits per value, and the largest relative error of the whole gradient that they may cause in a small model.
#: ReLU keeps its signs, and SFPR's scale saturates nothing: the two reasons for larger errors, each with a test of its own.
EIGHT_BITS = {
    "sfpr": ({"S": 1.0, "keep_signs": True}, 0.04),
    "jpeg-act": ({"keep_signs": True}, 0.15),
    "actnn-L2": ({"bits": 8}, 0.04),
}
eight_bits = pytest.mark.parametrize(("which", "options", "bound"), [(name, *rest) for name, rest in EIGHT_BITS.items()])


@dataclass
class Step:
    """Results of a step."""

    model: nn.Module
    loss: Tensor
    gradients: dict[str, Tensor]
    stats: Statistics | None


def plain_step(model: nn.Module, loss_of: Callable[[nn.Module], Tensor]) -> Step:
    """Run forward and backward of a copy of the model without compression."""
    return _step(model, loss_of, None)


def compressed_step(model: nn.Module, loss_of: Callable[[nn.Module], Tensor], which, **options) -> Step:
    """Run :func:`plain_step` with the same random numbers and compression of tensors of any size; the model is unchanged."""
    return _step(model, loss_of, which, **options)


def _step(model, loss_of, which, **options):
    model = copy.deepcopy(model)
    torch.manual_seed(1)
    stats = None
    if which is None:
        loss = loss_of(model)
    else:
        before = _structure(model)
        with actcodec.compress_activations(model, which, **({"min_bytes": 0} | options)) as stats:
            loss = loss_of(model)
            assert _structure(model) == before
        assert _structure(model) == before
    loss.backward()
    gradients = {name: p.grad for name, p in model.named_parameters() if p.grad is not None}
    assert all(gradient.isfinite().all() for gradient in gradients.values())
    return Step(model, loss.detach(), gradients, stats)


def _structure(model):
    """Return everything that a plug-in could replace in a model."""
    return [
        (
            name,
            id(module),
            type(module).forward,
            sorted(vars(module)),
            len(module._forward_hooks),
            len(module._forward_pre_hooks),
        )
        for name, module in model.named_modules()
    ] + [(name, id(p), p.data_ptr()) for name, p in model.named_parameters()]


def gradient_error(step: Step, reference: Step) -> float:
    """Return ||g - g'|| / ||g|| over all parameters together."""
    assert step.gradients.keys() == reference.gradients.keys()
    difference = sum(float((step.gradients[name] - g).double().square().sum()) for name, g in reference.gradients.items())
    norm = sum(float(g.double().square().sum()) for g in reference.gradients.values())
    return (difference / norm) ** 0.5


def assert_trains(model: nn.Module, loss_of: Callable[[nn.Module], Tensor], which, options, bound, least_ratio: float) -> Step:
    """Assert that a step with compression is close to one without, counts its ratio, and can be followed by an optimiser."""
    reference = plain_step(model, loss_of)
    step = compressed_step(model, loss_of, which, **options)
    assert gradient_error(step, reference) < bound
    assert step.stats.ratio > least_ratio
    assert step.stats.bytes_compressed < step.stats.bytes_original
    before = {name: p.detach().clone() for name, p in step.model.named_parameters()}
    torch.optim.SGD(step.model.parameters(), lr=0.1, momentum=0.9).step()
    for name, p in step.model.named_parameters():
        torch.testing.assert_close(
            p.detach(), before[name] - 0.1 * step.gradients[name] if name in step.gradients else before[name]
        )
    return step


def codecs_of(stats: Statistics, **conditions) -> set[str]:
    """Return the codecs of the rows that have some values."""
    rows = [row for row in stats.tensors if all(row[key] == value for key, value in conditions.items())]
    assert rows, f"no tensor with {conditions} in\n{stats.table()}"
    return {row["codec"] for row in rows}
