"""Row S36: channels far from zero. Gradients through normalisations keep their error whatever the mean, in every codec."""

import math

import actcodec
import numpy as np
import pytest
import torch
from actcodec.codecs import CODEC_NAMES, codec
from actcodec.codecs.centring import CentredForm, Centres, compress_centred, decompress_centred
from actcodec.golden.near_zero import FAR, LEAST_VALUES
from actcodec.saved.forms import Coded
from actcodec.study import diagnose
from actcodec.training import POLICY_NAMES, policy
from cdu_tools.errors import UserError
from torch import nn

CENTRED = [name for name in CODEC_NAMES if codec(name).centred]
#: Codecs with steps along the last axis: a constant without its centre, zero, is coded in steps of its neighbours.
BY_FEATURE = ("feature-coded", "feature-klt")
#: Distance of means from zero in standard deviations.
MEANS = (30, 1000, 10_000)


class _Rows(nn.Module):
    """Layer normalisation of rows (N, F) whose means differ from row to row."""

    def __init__(self, layer, mean):
        super().__init__()
        self.layer, self.norm = layer, nn.LayerNorm(32)
        self.register_buffer("means", mean * torch.randn(64, 1).sign() * (1 + torch.rand(64, 1)))

    def forward(self, x):
        return self.norm(self.layer(x) + self.means)


def network(kind, mean):
    """Return a layer with results far from zero and a normalisation after it, its input, and weights for a loss.

    For batch normalisation only every second channel is far.
    """
    torch.manual_seed(1)
    if kind in ("batch", "instance", "group"):
        layer = nn.Conv2d(3, 8, 3, padding=1, padding_mode="circular")
        norms = {"batch": nn.BatchNorm2d(8), "instance": nn.InstanceNorm2d(8, affine=True), "group": nn.GroupNorm(2, 8)}
        norm, x = norms[kind], torch.randn(16, 3, 16, 16)
    else:
        layer, x = nn.Linear(12, 32), torch.randn(*((8, 16) if kind == "layer" else (64,)), 12)
        norm = nn.LayerNorm(32) if kind == "layer" else nn.BatchNorm1d(32)
    with torch.no_grad():
        distance = mean * layer(x).std()
        if kind == "rows":
            model = _Rows(layer, distance)
        else:
            layer.bias[:: 2 if kind.startswith("batch") else 1] += distance
            model = nn.Sequential(layer, norm)
    for parameter in [p for module in model.modules() if not isinstance(module, (nn.Conv2d, nn.Linear)) for p in _own(module)]:
        parameter.data = torch.randn_like(parameter)
    return model, x, torch.randn_like(model(x))


def _own(module):
    return module.parameters(recurse=False)


KINDS = ("batch", "instance", "group", "layer", "batch of columns", "rows")


def gradient(model, x, weights, chosen=None):
    """Return the gradient of input and parameters together, and the ratio."""
    model.zero_grad()
    x = x.clone().requires_grad_()
    if chosen is None:
        loss, ratio = (model(x) * weights).sum(), 1.0
    else:
        with actcodec.compress_activations(model, chosen, compress_loss=True) as stats:
            loss = (model(x) * weights).sum()
        ratio = stats.ratio
    loss.backward()
    return torch.cat([x.grad.flatten(), *(p.grad.flatten() for p in model.parameters())]), ratio


def error(kind, mean, chosen):
    model, x, weights = network(kind, mean)
    exact, _ = gradient(model, x, weights)
    got, ratio = gradient(model, x, weights, chosen)
    return float((got - exact).norm() / exact.norm()), ratio


def assert_as_without_a_mean(kind, made, means=MEANS):
    usual, usual_ratio = error(kind, 0, made())
    for mean in means:
        found, ratio = error(kind, mean, made())
        assert found <= 1.15 * usual + 0.003, f"{kind}, mean {mean}"
        # A centre has 4 bytes, for as few as 32 values of a row or column.
        assert ratio >= (0.7 if kind in ("rows", "layer", "batch of columns") else 0.95) * usual_ratio


def test_every_codec_that_keeps_values_inexactly_is_centred():
    x = torch.randn(2, 4, 16, 16) * 2.0 ** torch.randint(-60, 60, (2, 4, 16, 16))
    for name in CODEC_NAMES:
        exact = torch.equal(codec(name).decompress(codec(name).compress(x)), x)
        assert codec(name).centred == (not exact and name != "brc")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", CENTRED)
def test_s36_the_gradient_of_every_codec_is_as_exact_far_from_zero(name, kind):
    assert_as_without_a_mean(kind, lambda: codec(name))


@pytest.mark.parametrize("name", [name for name in POLICY_NAMES if name not in ("actnn-L4", "actnn-L5", "vdnn")])
def test_s36_the_gradient_of_every_policy_is_as_exact_far_from_zero(name):
    for kind in ("batch", "batch of columns"):
        assert_as_without_a_mean(kind, lambda: policy(name), (1000,))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("name", [name for name in CENTRED if name not in BY_FEATURE])
def test_s36_constant_channels_come_back_exactly(name, dtype):
    x = torch.randn(4, 8, 16, 16).to(dtype)
    for channel, constant in enumerate((3.7, -1000.1, 1e-3, 6e4)):
        x[:, channel] = constant
    y = Coded(x, codec(name)).tensor()
    if codec(name).compress(torch.zeros(4, 8, 16, 16)).decompress().any():
        # These have no code for zero and use a value next to nothing instead.
        torch.testing.assert_close(y[:, :4], x[:, :4], rtol=torch.finfo(dtype).eps, atol=0)
    else:
        assert torch.equal(y[:, :4], x[:, :4])


@pytest.mark.parametrize("name", [name for name in CENTRED if not name.startswith(("actnn", "sparse", *BY_FEATURE))])
def test_a_constant_is_not_lost_beside_other_channels_in_a_block(name):
    """Maps of a height that is no multiple of 8 share blocks, and a transform spreads errors over a block.

    ActNN's groups of values have one range, and features one step, whatever channels they are of.
    """
    for constant in (1e-3, 1.0, -1000.0):
        x = torch.randn(4, 8, 14, 14) * 0.5
        x[:, 3] = constant
        y = Coded(x, codec(name)).tensor()
        torch.testing.assert_close(y[:, 3], x[:, 3], rtol=4 * torch.finfo(torch.float32).eps, atol=0)


def _cases():
    torch.manual_seed(2)
    normal = torch.randn(4, 8, 16, 16)
    positive = normal + 30
    positive[0, :, 3] = 0
    return {
        "normal": normal,
        "relu": normal.relu(),
        "means of three deviations": normal + 3,
        "uniform": torch.rand(4, 8, 16, 16),
        "sparse": normal.relu() * (torch.rand_like(normal) < 0.1),
        "zeros": torch.zeros(4, 8, 16, 16),
        "relu far from zero, with zeros": positive,
        "few values": torch.rand(2, 8, 3, 5) * 0.01 + 1,
        "rows": torch.randn(64, 40),
        "one value": torch.full((1, 1), 5.0),
    }


@pytest.mark.parametrize("name", ["sfpr", "sfpr+zvc", "jpeg-act", "jpeg-base", "division", "actnn", "autoquant"])
@pytest.mark.parametrize("case", _cases())
def test_other_tensors_are_compressed_to_the_same_bytes(name, case):
    x, one = _cases()[case], codec(name)
    if one.fits(x.shape):
        packed = compress_centred(x, one)
        assert packed.to_bytes() == codec(name).compress(x).to_bytes()


def reference(x):
    """By axis 1 in numpy, float64: (mean, deviation)."""
    values = np.moveaxis(x.double().numpy(), 1, 0).reshape(x.shape[1], -1)
    return values.mean(1), values.std(1)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("shape", [(4, 64, 8, 8), (2, 64, 300), (128, 64), (3, 64, 2, 5, 7), (700, 64, 1, 1)])
def test_far_channels_are_those_of_the_definition(shape, dtype):
    torch.manual_seed(3)
    wanted = torch.linspace(-2 * FAR, 2 * FAR, shape[1]).view(1, -1, *[1] * (len(shape) - 2))
    x = (torch.randn(shape) + wanted).to(dtype)
    mean, deviation = reference(x)
    distance = np.abs(mean) / deviation
    decided = np.abs(distance / FAR - 1) > 0.01  # channels that rounding may decide are left out
    centres = Centres.of(x)
    spread = centres.taken_off(torch.zeros_like(x)).neg()
    far = (spread != 0).transpose(0, 1).flatten(1).any(1).numpy()
    assert (far[decided] == (distance > FAR)[decided]).all()
    held = np.moveaxis(spread.double().numpy(), 1, 0).reshape(shape[1], -1)[far, 0]
    np.testing.assert_allclose(held, mean[far], rtol=2 * torch.finfo(dtype).eps)
    assert centres.nbytes == math.ceil(shape[1] / 8) + far.sum() * x.element_size()


@pytest.mark.parametrize("scale", [1e-43, 1e-37, 1e-30, 1e-18, 1e15, 1e25, 1e36])
def test_the_decision_does_not_depend_on_the_scale(scale):
    torch.manual_seed(4)
    x = torch.randn(4, 2, 16, 16) + torch.tensor([0.0, 40.0]).view(1, 2, 1, 1)
    centres = Centres.of((x.double() * scale).float())
    assert centres.mask.tolist() == [0b10]
    assert float(centres.values) == pytest.approx(40 * scale, rel=0.01, abs=1e-44)


def test_maps_that_are_far_apart_have_a_centre_each():
    torch.manual_seed(5)
    offsets = torch.tensor([30.0, -30.0, 45.0, -50.0]).view(4, 1, 1, 1)
    x = torch.randn(4, 3, 16, 16)
    x[:, 1:2] += offsets
    centres = Centres.of(x)
    assert centres.mask.tolist() == [0b10]
    torch.testing.assert_close(centres.values, x[:, 1:2].mean((2, 3)), rtol=1e-5, atol=0)
    assert centres.nbytes == 1 + 4 * 4


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("name", CENTRED)
def test_the_ends_of_a_format_stay_finite(name, dtype):
    most = torch.finfo(dtype).max
    for sign in (1, -1):
        x = (sign * most * torch.linspace(0.9, 1, 4 * 2 * 16 * 16, dtype=torch.float64).view(4, 2, 16, 16)).to(dtype)
        y = Coded(x, codec(name)).tensor()
        assert y.isfinite().all()
        assert ((y.double() / most - x.double() / most).abs() <= 0.1).all()


@pytest.mark.parametrize("name", CENTRED)
def test_centres_are_counted_and_nothing_else_changes(name):
    torch.manual_seed(6)
    x = torch.randn(4, 8, 16, 16)
    x[:, 2] += 30
    before = x.clone()
    form = Coded(x, codec(name))
    assert torch.equal(x, before)
    packed = compress_centred(x, codec(name))
    assert isinstance(packed, CentredForm)
    assert form.nbytes == packed.nbytes == packed.left.nbytes + 1 + 4
    left = x.clone()
    left[:, 2] -= float(packed.centres.values)
    expected = codec(name).compress(left).decompress()
    expected[:, 2] += float(packed.centres.values)
    assert torch.equal(decompress_centred(packed, codec(name)), expected)
    assert not form.keeps_zeros
    with pytest.raises(UserError, match="no bitstream: compress it with the codec itself"):
        packed.to_bytes()


@pytest.mark.parametrize("name", ["sfpr", "jpeg-act", "actnn", "division", "actnn-sample"])
def test_every_backend_gets_what_is_left(name):
    torch.manual_seed(7)
    x = torch.randn(4, 8, 16, 16) * 0.1 + 30
    one, other = (compress_centred(x, codec(name, backend=backend)) for backend in ("torch", "native"))
    assert torch.equal(one.centres.values, other.centres.values)
    assert torch.equal(decompress_centred(one, codec(name)), decompress_centred(other, codec(name, backend="native")))
    if name != "actnn-sample":
        assert one.left.to_bytes() == other.left.to_bytes()


def test_few_values_have_no_centre():
    torch.manual_seed(8)
    for count in (LEAST_VALUES - 1, LEAST_VALUES):
        assert (Centres.of(torch.randn(count, 3) * 0.1 + 30) is None) == (count < LEAST_VALUES)


def test_a_diagnosis_sees_centred_tensors():
    """Also in the passes in which all tensors but one are exact."""
    model, x, weights = network("batch", 1000)
    found = diagnose(model, lambda: (model(x) * weights).sum(), "sfpr")
    assert found.gradient_error < 0.05
    assert all(one.gradient_error < 0.05 for one in found.tensors)
