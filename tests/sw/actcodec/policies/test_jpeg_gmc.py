"""Policy jpeg-gmc in training: one copy with exact signs for batch normalisation, ReLU and the next layer."""

import copy
import gc
import weakref
from collections import Counter

import actcodec
import pytest
import torch
from actcodec.codecs.codec import JpegGmcCodec
from actcodec.policies.groups.norm_copy import Group
from actcodec.study import experiment
from actcodec.study.data import load
from actcodec.study.diagnosis import Passes
from actcodec.study.models import ResNet
from actcodec.training import policy
from cdu_tools.errors import UserError
from normalised_networks import (
    NETWORKS,
    Branches,
    Chain,
    PreActivation,
    gradients,
    images,
    relative,
    set_norm,
    substituted_gradients,
)
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

MAP = (4, 8, 16, 16)


class Fine(JpegGmcCodec):
    """Steps of 4, finer than tables have them: there is none of the coefficients that would saturate."""

    def _shifts(self):
        return 3, *(2,) * 63


def made(name, **options):
    return Fine(**options) if name == "jpeg-gmc" else actcodec.codec(name, **options)


OTHER = {"dqt": "uniform-8", "rounding": "half_away", "rec": 0, "S": 0.9}
FINE = OTHER | {"codec_factory": made}


def both(model, x, autocast=False, **options):
    """Gradients of the same model without and with the policy, from random ones at its result; and the statistics."""
    exact, coded = copy.deepcopy(model), copy.deepcopy(model)
    with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
        outputs = exact(x)
        with actcodec.compress_activations(coded, "jpeg-gmc", **options) as stats:
            same = coded(x)
    assert torch.equal(outputs, same)
    at_result = images(*outputs.shape, seed=4).to(outputs.dtype)
    outputs.backward(at_result)
    same.backward(at_result)
    return gradients(exact), gradients(coded), stats


def smooth(*shape, seed=0):
    n, c, h, w = shape
    return F.interpolate(images(n, c, h // 4, w // 4, seed=seed), (h, w), mode="bilinear")


@pytest.mark.parametrize(
    ("producer", "consumer", "shape", "want"),
    [
        ("input", "conv", MAP, "jpeg-gmc"),
        ("conv", "norm", MAP, "jpeg-gmc"),
        ("sum", "norm", MAP, "jpeg-gmc"),
        ("pool", "conv", MAP, "jpeg-gmc"),
        ("relu", "relu", MAP, "brc"),
        ("relu", "conv", MAP, "jpeg-gmc"),
        ("conv", "gelu", MAP, "jpeg-gmc"),
        ("dropout", "conv", MAP, "sfpr+zvc"),
        ("linear", "attention", MAP, "sfpr"),
        ("softmax", "linear", MAP, None),
        ("mul", "linear", MAP, "sfpr"),
        ("norm", "linear", (4, 64, 32), "sfpr"),
        ("relu", "linear", (4, 64, 32), "sfpr"),
        ("linear", "relu", (4, 64, 32), "sfpr"),
        ("conv", "norm", (4, 8, 4, 4), "sfpr"),
        ("relu", "conv", (4, 8, 4, 4), "sfpr+zvc"),
        ("pool", "conv", (4, 8, 7, 7), "sfpr+zvc"),
    ],
)
def test_the_table(producer, consumer, shape, want):
    chosen = policy("jpeg-gmc").choose(actcodec.training.SavedTensor(producer, consumer, shape, torch.float32))
    assert (chosen and chosen.name) == want


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("relu", ["module", "in place", "functional", "method", "method in place"])
@pytest.mark.parametrize("options", [{}, OTHER])
def test_gradients_are_those_of_the_substituted_tensors(options, relu, training):
    """All of them, by torch's own backward functions, from a' with the signs of a."""
    torch.manual_seed(1)
    model = Chain(relu)
    set_norm(model.bn)
    model.bn.running_mean.normal_(0, 0.1)
    model.train(training)
    x, weights = smooth(6, 3, 16, 16), images(6, 5, 14, 14, seed=4)
    coded = copy.deepcopy(model)
    with actcodec.compress_activations(coded, "jpeg-gmc", **options) as stats:
        coded(x).backward(weights)
    assert [record.codec for record in stats.records] == ["jpeg-gmc"] * 3
    codec = actcodec.codec("jpeg-gmc", **options)

    def stored(a, gamma, beta):
        found = codec.compress(a)
        values, step = found.decompress(), found.reciprocals.view(1, -1, 1, 1)
        return torch.where(a > 0, torch.maximum(values, step), values.clamp_max(0)).double()

    wanted, got = substituted_gradients(model, x, weights, stored, codec.compress(x).decompress()), gradients(coded)
    assert wanted.keys() == got.keys()
    for name, grad in wanted.items():
        # A coefficient on the border of two steps is rare, and changes little.
        assert (got[name] - grad).norm() <= grad.norm() * 5e-3, name


@pytest.mark.parametrize("side", [16, 4])
@pytest.mark.parametrize("kind", ["relu", "leaky", "in place"])
@pytest.mark.parametrize("shift", [0.0, 2.5, -2.9, 30.0])
def test_relus_gradient_is_exact_to_the_bit(shift, kind, side):
    """Whatever gamma and beta are; among them channels of zeros, for which ReLU passes nothing. Maps of 4 have sfpr."""
    norm, conv = nn.BatchNorm2d(6), nn.Conv2d(6, 4, 3)
    x = images(8, 6, side, side).requires_grad_()
    with torch.no_grad():
        norm.weight.copy_(torch.tensor([1.0, -0.7, 0.0, 0.0, 1e-4, 2.0]))
        norm.bias.copy_(torch.tensor([shift, shift, 0.0, 1.0, 0.0, -shift]))
    at_norm, at_relu = [], []
    with actcodec.compress_activations(nn.ModuleList([norm, conv]), "jpeg-gmc", compress_loss=True):
        y = norm(x * 1.0)
        y.register_hook(at_norm.append)
        positive = y.detach() > 0
        r = {"relu": F.relu, "leaky": lambda y: F.leaky_relu(y, 0.25), "in place": torch.relu_}[kind](y)
        r.register_hook(at_relu.append)
        loss = conv(r).square().sum()
    assert 0 < positive.double().mean() < 1
    loss.backward()
    if kind != "in place":  # a hook before a change in place sees the gradient behind it
        assert torch.equal(at_norm[0], at_relu[0] * torch.where(positive, 1.0, 0.25 if kind == "leaky" else 0.0))
    assert x.grad.isfinite().all()


@pytest.mark.parametrize("mode", ["train", "eval", "channels last"])
@pytest.mark.parametrize("name", NETWORKS)
def test_networks_of_many_kinds(name, mode):
    """Near the gradients without compression in the finest steps; a wrong tensor in any place would be off by much more."""
    torch.manual_seed(2)
    model = NETWORKS[name]().train(mode != "eval")
    for number, module in enumerate(model.modules()):
        if isinstance(module, nn.modules.batchnorm._BatchNorm) and module.affine:
            set_norm(module, number)
    x = images(16, 3, 12, 12, seed=3)
    if mode == "channels last":
        x, model = x.to(memory_format=torch.channels_last), model.to(memory_format=torch.channels_last)
    want, got, _ = both(model, x, **FINE)
    assert relative(want, got) < 0.1
    want, got, stats = both(model, x)
    assert relative(want, got) < 0.3  # the input is noise, which no transform makes smaller
    assert stats.ratio > 3


def test_rows_of_tokens_get_no_transform():
    """A layer norm over the last of four axes, as in ConvNeXt and Swin; a group norm has maps."""
    model = nn.ModuleList([nn.Conv2d(3, 16, 3, padding=1), nn.LayerNorm(16), nn.Linear(16, 32), nn.GroupNorm(2, 16)])
    x = smooth(2, 3, 16, 16)
    with actcodec.compress_activations(model, "jpeg-gmc", compress_loss=True) as stats:
        maps = model[0](x)
        loss = model[3](maps * 2.0).square().sum() + F.gelu(model[2](model[1](maps.permute(0, 2, 3, 1)))).sum()
    found = {(record.op, record.saved_by): record.codec for record in stats.records}
    assert found.pop(("input", ("conv",))) == "jpeg-gmc"
    assert found.pop(("conv", ("norm",))) == found.pop(("norm", ("linear",))) == found.pop(("linear", ("gelu",))) == "sfpr"
    assert set(found.values()) == {"jpeg-gmc"}
    loss.backward()


def test_one_copy_and_signs_only_where_a_relu_asks():
    """One of two normalisations has a ReLU after it; the bytes of a group are those of its streams and 8 per channel."""
    conv = [nn.Conv2d(3, 8, 3, padding=1), nn.Conv2d(8, 8, 3, padding=1), nn.Conv2d(8, 8, 3, padding=1)]
    model = nn.Sequential(conv[0], nn.BatchNorm2d(8), conv[1], nn.BatchNorm2d(8), nn.ReLU(), conv[2])
    x = smooth(4, 3, 16, 16)
    with actcodec.compress_activations(model, "jpeg-gmc") as stats:
        model(x)
    codec, results = actcodec.codec("jpeg-gmc"), []
    for module in (model[1], model[3]):
        module.register_forward_hook(lambda _m, _i, out: results.append(codec.compress(out)))
    model(x)
    kept = [record.bytes_compressed for record in stats.records]
    assert len(kept) == 5
    assert kept[1] + kept[2] == results[0].nbytes + 8 * 8
    values = results[1].header.view.rows * results[1].header.view.columns
    beside = kept[3] + kept[4] - results[1].nbytes - 8 * 8
    assert 0 < beside < values // 8


@pytest.mark.parametrize(
    ("build", "records", "groups"),
    [(Chain, 3, 1), (PreActivation, 1 + 2 * 4, 4), (Branches, 1 + 3 + 2, 2), (lambda: ResNet(3, 10, 8, 1, 1), 8, 3)],
)
def test_what_is_in_a_group(build, records, groups):
    model = build()
    with actcodec.compress_activations(model, "jpeg-gmc") as stats:
        loss = model(images(4, 3, 16, 16)).sum()
    gc.collect()
    found = [weakref.ref(one) for one in gc.get_objects() if type(one) is Group]
    assert (len(stats.records), len(found)) == (records, groups)
    loss.backward()
    del loss
    gc.collect()
    assert all(one() is None for one in found)


@pytest.mark.parametrize("gamma", ["zero", "small", "small beside beta"])
def test_small_gammas_keep_the_input_as_well(gamma):
    """Half of the channels; x' would be infinitely wrong. Eight sums of few samples: six batches tell more than one."""
    names = ("bn.weight", "bn.bias", "conv1.weight", "conv2.weight")
    errors, wanted = Counter(), Counter()
    for seed in range(6):
        model = Chain()
        with torch.no_grad():
            model.bn.weight[::2] = {"zero": 0.0, "small": 1e-30, "small beside beta": 1e-6}[gamma]
            model.bn.bias[::2] = {"zero": 0.3, "small": -0.1, "small beside beta": 1.0}[gamma]
        want, got, _ = both(model, images(16, 3, 16, 16, seed=seed), **FINE)
        assert all(grad.isfinite().all() for grad in got.values())
        parts = {name: (name, slice(None)) for name in names} | {"small bn.weight": ("bn.weight", slice(0, None, 2))}
        for part, (name, places) in parts.items():
            errors[part] += float((got[name] - want[name])[places].square().sum())
            wanted[part] += float(want[name][places].square().sum())
    for part, error in errors.items():
        assert error <= 0.08**2 * wanted[part], part


def test_autocast():
    want, got, stats = both(Chain(), images(8, 3, 16, 16), autocast=True, **FINE)
    assert relative(want, got) < 0.1
    assert {record.dtype for record in stats.records} == {"bfloat16"}


def test_checkpointing_and_second_derivatives():
    """Inside a checkpoint nothing is packed, and recomputed tensors are exact; a gradient of a gradient can be taken."""
    model, x = Chain(), images(4, 3, 16, 16).requires_grad_()
    want = torch.autograd.grad(model(x).square().sum(), x)[0]
    with actcodec.compress_activations(model, "jpeg-gmc", **FINE):
        loss = checkpoint(model, x, use_reentrant=False).square()
    got = torch.autograd.grad(loss, x, torch.ones_like(loss))[0]
    assert 0 < (got - want).norm() < 0.15 * want.norm()  # the result is squared from a copy

    def penalty(name, **options):
        with actcodec.compress_activations(model, name, **options):
            loss = model(x).sum()
        slope = torch.autograd.grad(loss, x, create_graph=True)[0]
        return torch.autograd.grad(slope.square().sum(), model.conv2.weight)[0]

    assert (penalty("jpeg-gmc", **FINE) - penalty("none")).norm() < 0.1 * penalty("none").norm()


def test_backward_twice():
    model = Chain()
    with actcodec.compress_activations(model, "jpeg-gmc") as stats:
        loss = model(images(4, 3, 16, 16)).sum()
    before = stats.bytes_compressed
    loss.backward(retain_graph=True)
    first = gradients(model)
    model.zero_grad()
    loss.backward()
    assert all(torch.equal(first[name], grad) for name, grad in gradients(model).items())
    assert stats.bytes_compressed == before


def test_both_backends_keep_the_same():
    model, x = ResNet(3, 10, 8, 1), smooth(4, 3, 32, 32)
    found = [both(model, x, backend=which) for which in ("torch", "native")]
    assert found[0][2].bytes_compressed == found[1][2].bytes_compressed
    assert all(torch.equal(found[0][1][name], grad) for name, grad in found[1][1].items())


@pytest.mark.parametrize("model", ["resnet", "vgg", "wide-resnet", "vdsr"])
def test_gradients_of_trained_networks_point_where_they_should(model):
    """After some steps, at the default options: a cosine of 0.98 and more, at a better ratio than the published policy's."""
    data = load(experiment.network(model).dataset, None, 256)
    recipe = experiment.Recipe.usual(model, steps=12, batch=32)
    network = experiment.initial_model(recipe, data, 0)
    experiment.train(recipe, data, "none", policy("none"), 0, model=network)
    inputs, targets = data.train_inputs[:64], data.train_targets[:64]
    passes, kept = Passes(network, lambda: experiment.loss_of(network(inputs), targets, data)), []
    flat = []
    for name in ("none", "jpeg-act", "jpeg-gmc"):
        chosen = policy(name, **({} if name == "none" else {"backend": "native"}))
        torch.manual_seed(0)
        found = passes.gradient(chosen)
        flat.append(torch.cat([one.double().flatten() for one in found if one is not None]))
        with torch.random.fork_rng(), actcodec.compress_activations(network, chosen) as stats:
            network(inputs)
        kept.append(stats.bytes_compressed)
    cosine = float(flat[0] @ flat[2] / (flat[0].norm() * flat[2].norm()))
    assert cosine > 0.98
    assert kept[1] > 1.5 * kept[2]


def test_options():
    with pytest.raises(UserError, match="codec 'jpeg-gmc' has no option 'bits'"):
        policy("jpeg-gmc", bits=4)
    assert (
        policy("jpeg-gmc", dqt="optH").choose(actcodec.training.SavedTensor("conv", "norm", MAP, torch.float32)).dqt == "optH"
    )
