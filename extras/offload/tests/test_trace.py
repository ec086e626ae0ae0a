"""Tracing against figures worked out by hand, published figures, and the plug-in's own account of a real step."""

import pytest
import torch
from actcodec.study.models import ResNet, Vgg
from actcodec.training import compress_activations
from cdu_offload import network as networks
from cdu_offload.architectures import ARCHITECTURES, resnet, vgg16
from cdu_offload.network import NORM_INPUT, NORM_RESULT
from cdu_offload.trace import trace
from torch import nn
from torch.nn import functional as F

VALUE = 4


def small():
    """Convolution, ReLU and convolution, for 2 images of 3x8x8."""
    return nn.Sequential(nn.Conv2d(3, 4, 3, 1, 1, bias=False), nn.ReLU(), nn.Conv2d(4, 3, 1, bias=False))


@pytest.fixture(scope="module")
def traced():
    return trace("small", "Small", "resnet", small, (2, 3, 8, 8), None)


def test_operations_and_bytes_by_hand(traced):
    """A multiplication and an addition per weight and position; arguments and results move once."""
    positions = 2 * 8 * 8
    first, relu, second = traced.forward[:3]
    assert first.flops == 2 * positions * 4 * 3 * 9
    assert first.nbytes == VALUE * (positions * 3 + 4 * 3 * 9 + positions * 4)
    assert (relu.flops, relu.nbytes) == (0, VALUE * 2 * positions * 4)
    assert second.flops == 2 * positions * 3 * 4
    backward = [work for work in traced.backward if work.flops]
    # The input needs no gradient: the first convolution has only that of its weights.
    assert [work.flops for work in backward] == [2 * second.flops, first.flops]


def test_who_leaves_and_who_needs_what(traced):
    kinds = [(activation.producer, activation.kind, activation.shape) for activation in traced.activations]
    image, hidden = ("input", "dense", (2, 3, 8, 8)), ("relu", "sparse", (2, 4, 8, 8))
    assert kinds[:2] == [image, hidden]
    first, relu, second = traced.forward[:3]
    assert (first.releases, first.makes) == ((0,), ())
    assert (relu.releases, relu.makes) == ((), ())  # the second convolution reads its result later
    assert second.releases == (1,)
    needs = [work.needs for work in traced.backward if work.name in ("convolution_backward", "threshold_backward")]
    assert needs == [(1,), (1,), (0,)]
    assert traced.forward_layers[:3] == (0, 0, 1)
    assert traced.layer_of[:2] == (0, 1)


def test_the_optimizer_is_the_last_work(traced):
    weights = 4 * 3 * 9 + 3 * 4
    assert traced.backward[-1].nbytes == 5 * VALUE * weights


def test_signs_are_enough_where_no_convolution_reads():
    """A ReLU before a pool leaves one bit per value, and the next layer reads the pool's result."""

    def build():
        return nn.Sequential(nn.Conv2d(3, 4, 3, 1, 1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(64, 5))

    found = trace("pooled", "", "vgg", build, (2, 3, 8, 8), 5)
    assert [(a.producer, a.kind) for a in found.activations] == [("input", "dense"), ("relu", "signs"), ("pool", "unfit")]
    assert found.forward[1].makes == (1,)


@pytest.mark.parametrize("inplace", [False, True])
def test_the_result_of_a_normalisation_and_its_input_are_a_pair(inplace):
    """A ReLU must read the result directly, not a sum, and maps must be wide enough for a copy."""

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second, self.third = (nn.Conv2d(4, 4, 3, 1, 1, bias=False) for _ in range(3))
            self.norm, self.last = nn.BatchNorm2d(4), nn.BatchNorm2d(4)
            self.relu = nn.ReLU(inplace)

        def forward(self, x):
            y = self.relu(self.norm(self.first(x)))
            return self.third(self.relu(self.last(self.second(y)) + x))

    found = trace("pairs", "", "resnet", Block, (2, 4, 8, 8), None)
    pairs = [(a.producer, a.pair) for a in found.activations[:6]]
    assert (
        pairs
        == [
            *(("input", ""), ("conv", NORM_INPUT), ("relu", NORM_RESULT)),  # the first normalisation
            *(("conv", ""), ("relu", "")),  # the second one, and the sum
            ("conv", ""),  # read by the loss
        ][: len(pairs)]
    )
    assert not any(a.pair for a in trace("narrow", "", "resnet", Block, (2, 4, 4, 4), None).activations)


@pytest.mark.parametrize("build", [lambda: ResNet(width=8), lambda: Vgg(width=8, depth=2)])
def test_bytes_are_those_that_the_plug_in_counts(build):
    """The hooks of a real step on the CPU count the same activations, and JPEG-ACT's policy treats them as in the trace."""
    torch.manual_seed(0)
    found = trace("net", "", "resnet", build, (2, 3, 32, 32), 10)
    model = build()
    with compress_activations(model, "jpeg-act", min_bytes=0) as statistics:
        F.cross_entropy(model(torch.randn(2, 3, 32, 32)), torch.tensor([1, 2]))
    counted = {}
    kinds = {"jpeg-act": "dense", "brc": "signs", "sfpr+zvc": "sparse", "sfpr": "unfit"}
    for record in statistics.records:
        if record.codec in kinds:
            key = record.op, kinds[record.codec], record.shape
            counted[key] = counted.get(key, 0) + record.bytes_original
    expected = {}
    for activation in found.activations:
        key = activation.producer, activation.kind, activation.shape
        expected[key] = expected.get(key, 0) + activation.nbytes
    assert expected == counted


@pytest.mark.parametrize(
    ("build", "weights"),
    [
        (lambda: resnet((2, 2, 2, 2), False, 1000), 11_689_512),
        (lambda: resnet((3, 4, 6, 3), True, 1000), 25_557_032),
        (vgg16, 138_357_544),
    ],
)
def test_architectures_have_the_published_number_of_weights(build, weights):
    """As torchvision's documentation gives them for resnet18, resnet50 and vgg16."""
    with torch.device("meta"):
        assert sum(parameter.numel() for parameter in build().parameters()) == weights


@pytest.mark.parametrize(("name", "gigaflops"), [("resnet18", 1.81), ("resnet50", 4.09), ("vgg16", 15.47)])
def test_shipped_networks_have_the_published_operations(name, gigaflops):
    """Multiply-adds per image of the forward pass, as torchvision's documentation gives them."""
    network = networks.shipped()[name]
    assert sum(work.flops for work in network.forward) / 2e9 / network.batch == pytest.approx(gigaflops, abs=0.01)


def test_shipped_networks_are_what_tracing_gives():
    known = ARCHITECTURES["vdsr"]
    again = trace("vdsr", known.title, known.family, known.build, known.inputs, known.classes)
    assert networks.shipped()["vdsr"] == again


def test_every_architecture_is_shipped_whole():
    shipped = networks.shipped()
    assert list(shipped) == list(ARCHITECTURES)
    for name, network in shipped.items():
        asked = {number for work in network.backward for number in work.needs}
        assert asked == set(range(len(network.activations))), name
        assert {a.kind for a in network.activations} <= set(networks.KINDS)
        assert network.activations[0].shape == ARCHITECTURES[name].inputs
