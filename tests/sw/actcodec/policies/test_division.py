"""DIVISION's floating-point form as a policy: every activation, linear layers too, and ReLU's own signs."""

import copy

import actcodec
import pytest
import torch
from actcodec.codecs.division.division_float import PARTS
from actcodec.study.models import ResNet
from actcodec.training import SavedTensor, policy, policy_options
from cdu_tools.errors import UserError
from torch import nn
from torch.nn import functional


def images(*shape):
    return torch.randn(shape, generator=torch.Generator().manual_seed(3))


def errors(model, x, which, **options):
    """Relative error of all gradients, with the gradient of a random result's product; and the statistics."""
    plain, coded = copy.deepcopy(model), copy.deepcopy(model)
    want, same = plain(x), None
    with actcodec.compress_activations(coded, which, **options) as stats:
        same = coded(x)
    at_result = torch.randn(want.shape, generator=torch.Generator().manual_seed(4))
    want.backward(at_result)
    same.backward(at_result)
    exact, got = (torch.cat([p.grad.flatten() for p in m.parameters()]) for m in (plain, coded))
    return float((got - exact).norm() / exact.norm()), stats


@pytest.mark.parametrize(
    ("tensor", "want"),
    [
        (("conv", "norm", (4, 8, 16, 16)), "division-float"),
        (("relu", "conv", (4, 8, 7, 7)), "division-float"),
        (("pool", "linear", (4, 8)), "division-float"),
        (("norm", "linear", (4, 9, 8)), "division-float"),
        (("conv", "norm", (4, 8, 3, 5, 7)), "actnn-float"),
        (("relu", "relu", (4, 8, 16, 16)), "brc"),
        (("softmax", "loss", (4, 8)), None),
        (("linear", "loss", (4, 8)), None),
    ],
)
def test_which_tensor_gets_what(tensor, want):
    chosen = policy("division-float", bits=4, block=12).choose(SavedTensor(*tensor, torch.float32))
    assert (chosen and chosen.name) == want
    assert getattr(chosen, "bits", 4) == 4
    assert getattr(chosen, "block", 12) == 12


def test_options_are_those_of_the_codec():
    assert policy_options("division-float") == ("bits", "block", "half", "parts", "rounding", "seed", "backend")
    with pytest.raises(UserError, match="codec 'division-float' has no option 'S'"):
        policy("division-float", S=2.0)


def test_relus_gradient_is_exact_beside_two_bits():
    """Values of 2 bits would make a fifth of the positive ones vanish; the signs stay in one bit."""
    conv = nn.Conv2d(6, 4, 3)
    x = images(8, 6, 14, 14).requires_grad_()
    at_sum, at_relu = [], []
    with actcodec.compress_activations(conv, "division-float") as stats:
        y = x * 1.0
        y.register_hook(at_sum.append)
        r = functional.relu(y)
        r.register_hook(at_relu.append)
        loss = conv(r).sum()
    loss.backward()
    assert torch.equal(at_sum[0], at_relu[0] * (x.detach() > 0))
    values, relu = actcodec.codec("division-float").compress(r.detach()), actcodec.codec("brc").compress(r.detach())
    record = next(record for record in stats.records if record.op == "relu")
    assert (record.codec, record.bytes_compressed) == ("division-float", values.nbytes + relu.nbytes)
    wrong = (values.decompress() > 0) != (r.detach() > 0)
    assert wrong.double().mean() > 0.05


def test_every_activation_of_a_network_of_odd_maps_is_compressed():
    """7 by 7 and 30 by 17, and linear layers: nothing is left over."""
    torch.manual_seed(1)
    head = [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 20), nn.ReLU(), nn.Linear(20, 5)]
    model = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 8, 3, 2), *head)
    for size in ((7, 7), (14, 14), (30, 17)):
        error, stats = errors(model, images(16, 3, *size), "division-float", bits=8)
        assert {record.codec for record in stats.records} <= {"division-float", "brc"}
        assert {len(record.shape) for record in stats.records} == {2, 4}
        assert error < 0.02
        error, stats = errors(model, images(16, 3, *size), "division-float")
        assert 0.02 < error < 1
        assert stats.ratio > 7


def test_the_ablations_lose_more():
    """At the gradients of a network with smooth images, as the paper finds in training."""
    torch.manual_seed(1)
    smooth = functional.interpolate(images(16, 3, 4, 4), scale_factor=8, mode="bicubic")
    model = ResNet(3, 10, 8)
    found = {part: errors(model, smooth, "division-float", parts=part)[0] for part in PARTS}
    assert all(found["both"] < found[part] for part in ("low", "high"))
    ratios = {part: errors(model, smooth, "division-float", parts=part)[1].ratio for part in PARTS}
    assert ratios["both"] < ratios["high"] == ratios["plain"] < ratios["low"]
