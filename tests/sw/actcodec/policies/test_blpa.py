"""BLPA in training: one copy for batch normalisation, ReLU and the next layer, and gradients that are right."""

import copy
import gc
import weakref
from functools import partial
from itertools import pairwise

import actcodec
import pytest
import torch
from actcodec.codecs import copies as copy_codecs
from actcodec.codecs.blpa import blpa_float
from actcodec.golden.sfpr import NonFiniteError
from actcodec.policies.groups.norm_copy import Group
from actcodec.study.models import ResNet
from actcodec.training import policy_options
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
from torch.multiprocessing.reductions import StorageWeakRef
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint


@pytest.fixture
def wide(monkeypatch):
    """A range that hardly any value exceeds: errors are those of steps, so that a wrong tensor would be obvious."""
    for module in (blpa_float, copy_codecs):
        monkeypatch.setattr(module, "BLPA_REACH", 5)


def both(model, x, bits=8, autocast=False, policy="blpa"):
    """Gradients of the same model without and with BLPA, from random ones at its result; and the statistics."""
    exact, coded = copy.deepcopy(model), copy.deepcopy(model)
    with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
        outputs = exact(x)
        with actcodec.compress_activations(coded, policy, bits=bits) as stats:
            same = coded(x)
    assert torch.equal(outputs, same)
    at_result = images(*outputs.shape, seed=4).to(outputs.dtype)
    outputs.backward(at_result)
    same.backward(at_result)
    return gradients(exact), gradients(coded), stats


def published_copy(a, gamma, beta, bits, *, ends=True):
    """The paper's formula in double precision; a' (N, C, H, W). Gamma by its magnitude; ``ends``: the range does."""
    step = (6 * gamma.double().abs() / 2**bits).view(1, -1, 1, 1)
    offset = (beta.double().view(1, -1, 1, 1) / step).floor()
    code = (a.double() / step).floor() + 2 ** (bits - 1) - offset
    return step * ((code.clamp(0, 2**bits - 1) if ends else code) + 0.5 - 2 ** (bits - 1) + offset)


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("bits", [2, 4, 8])
@pytest.mark.parametrize("relu", ["module", "in place", "functional", "method", "method in place"])
@pytest.mark.parametrize(("policy", "codec"), [("blpa", "blpa-float"), ("blpa-coded", "blpa-coded")])
def test_gradients_are_those_of_the_substituted_tensors(policy, codec, relu, bits, training):
    """All of them, by torch's own backward functions, from a' that the paper's formula gives."""
    torch.manual_seed(1)
    model = Chain(relu)
    set_norm(model.bn)
    model.bn.running_mean.normal_(0, 0.1)
    model.train(training)
    x, weights = images(6, 3, 12, 12), images(6, 5, 10, 10, seed=4)
    _, got, stats = both(model, x, bits, policy=policy)
    assert [record.codec for record in stats.records] == [codec] * 3

    stored = partial(published_copy, bits=bits, ends=policy == "blpa")
    wanted = substituted_gradients(model, x, weights, stored, actcodec.codec(codec, bits=bits).compress(x).decompress())
    assert wanted.keys() == got.keys()
    for name, grad in wanted.items():
        # A value whose code is another one by rounding is rare, and changes little.
        assert (got[name] - grad).norm() <= grad.norm() * 2e-3, name


@pytest.mark.parametrize("policy", ["blpa", "blpa-coded"])
@pytest.mark.parametrize("bits", [2, 4, 8])
@pytest.mark.parametrize("shift", [0.0, 2.5, -2.9, 3.5, -4.0, 30.0])
def test_relus_gradient_is_exact_to_the_bit(policy, bits, shift):
    """Whatever gamma and beta are; among them channels of zeros, for which ReLU passes nothing."""
    norm, conv = nn.BatchNorm2d(6), nn.Conv2d(6, 4, 3)
    x = images(8, 6, 10, 10).requires_grad_()
    with torch.no_grad():
        norm.weight.copy_(torch.tensor([1.0, -0.7, 0.0, 0.0, 1e-4, 2.0]))
        norm.bias.copy_(torch.tensor([shift, shift, 0.0, 1.0, 0.0, -shift]))
    at_norm, at_relu = [], []
    with actcodec.compress_activations(nn.ModuleList([norm, conv]), policy, bits=bits):
        y = norm(x * 1.0)
        y.register_hook(at_norm.append)
        r = F.relu(y)
        r.register_hook(at_relu.append)
        loss = conv(r).square().sum()
    positive = y.detach() > 0
    assert 0 < positive.double().mean() < 1
    loss.backward()
    assert torch.equal(at_norm[0], at_relu[0] * positive)
    assert x.grad.isfinite().all()


def test_finer_steps_make_the_coded_copys_gradient_exact():
    """No range ends: the error follows the step down."""
    torch.manual_seed(1)
    model = Chain()
    set_norm(model.bn)
    x = images(6, 3, 12, 12)
    found = [both(model, x, bits, policy="blpa-coded") for bits in (4, 6.5, 9, 12)]
    errors = [relative(want, got) for want, got, _ in found]
    assert errors[0] < 0.2
    # A step 2**2.5 times as fine, and the error with it.
    assert all(later < earlier / 3 for earlier, later in pairwise(errors)), errors
    assert found[0][2].ratio > found[1][2].ratio > found[2][2].ratio > found[3][2].ratio


@pytest.mark.parametrize("pool_first", [False, True])
def test_a_pool_that_lends_the_shape_does_not_hide_the_groups_bytes(pool_first):
    """A pool keeps the shape of a convolution's input, in either order; one more tensor joins the group afterwards."""
    norm, conv = nn.BatchNorm2d(8), nn.Conv2d(8, 4, 3)
    x = images(4, 8, 16, 16).requires_grad_()
    with actcodec.compress_activations(nn.ModuleList([norm, conv]), "blpa", bits=4) as stats:
        y = norm(x * 1.0)
        branches = [lambda: F.avg_pool2d(y, 2).sum(), lambda: conv(y).sum()]
        loss = sum(branch() for branch in (branches if pool_first else reversed(branches))) + conv(F.relu(y)).sum()
    group = x.numel() * 4 // 8 + 8 * 14
    assert stats.bytes_original == 3 * 4 * x.numel()
    assert stats.bytes_compressed == group
    loss.backward()
    assert x.grad.isfinite().all()


@pytest.mark.parametrize("inplace", [False, True])
@pytest.mark.parametrize("bits", [1, 2, 4, 8])
def test_bytes_count_once_for_a_group(bits, inplace):
    """Two tensors of 32 bits become one of K, with 14 bytes for a channel: step 4, first code 2, slope and shift 8."""
    channels, depth, batch = 16, 6, 8
    layers = [nn.Conv2d(channels, channels, 3, padding=1, bias=False) for _ in range(depth)]
    model = nn.Sequential(*[m for conv in layers for m in (conv, nn.BatchNorm2d(channels), nn.ReLU(inplace))])
    x = images(batch, channels, 16, 16).requires_grad_()
    with actcodec.compress_activations(model, "blpa", bits=bits) as stats:
        loss = model(x * 1.0).sum()
    values = x.numel()
    group = values * bits // 8 + channels * 14
    first, *groups = stats.records
    assert (first.op, first.bytes_compressed) == ("mul", values * bits // 8 + channels * 6)
    assert [record.op for record in groups] == ["conv", "relu"] * depth
    for norm, relu in zip(groups[::2], groups[1::2], strict=True):
        assert norm.bytes_original == relu.bytes_original == 4 * values
        assert norm.bytes_compressed + relu.bytes_compressed == group
    assert stats.bytes_compressed == first.bytes_compressed + depth * group
    chain = sum(record.bytes_original for record in groups) / sum(record.bytes_compressed for record in groups)
    assert chain == pytest.approx(2 * 32 / bits, rel=0.06)
    loss.backward()
    assert x.grad.isfinite().all()


@pytest.mark.parametrize("mode", ["train", "eval", "channels last"])
@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.usefixtures("wide")
def test_networks_of_many_kinds(name, mode):
    """Near the gradients without compression at 8 bits; a wrong tensor in any place would be off by much more."""
    torch.manual_seed(2)
    model = NETWORKS[name]().train(mode != "eval")
    for number, module in enumerate(model.modules()):
        if isinstance(module, nn.modules.batchnorm._BatchNorm) and module.affine:
            set_norm(module, number)
    x = images(16, 3, 12, 12, seed=3)
    if mode == "channels last":
        x, model = x.to(memory_format=torch.channels_last), model.to(memory_format=torch.channels_last)
    want, got, stats = both(model, x)
    assert relative(want, got) < 0.04
    assert stats.ratio > 3
    want, got, _ = both(model, x, bits=4)
    assert 0 < relative(want, got) < 0.3


def copies(model, x, bits=4):
    """Distinct tensors that autograd saves, and how many groups there are."""
    with actcodec.compress_activations(model, "blpa", bits=bits) as stats:
        loss = model(x).sum()
    gc.collect()
    groups = [one for one in gc.get_objects() if type(one) is Group]
    found = len(stats.records), len(groups), sum(record.bytes_compressed for record in stats.records)
    del loss, groups
    return found


@pytest.mark.parametrize(
    ("build", "records", "groups"),
    [
        (lambda: Chain(), 3, 1),
        # Sums are inputs of normalisation, so that every tensor but the images is in a group of two.
        (PreActivation, 1 + 2 * 4, 4),
        # The first group has x, a and relu(a).
        (Branches, 1 + 3 + 2, 2),
        # After a sum ReLU's result has a copy of its own: three copies for the four tensors of a block.
        (lambda: ResNet(3, 10, 8, 1, 1), 1 + 2 + 3 + 1 + 1, 3),
    ],
)
def test_what_is_in_a_group(build, records, groups):
    assert copies(build(), images(4, 3, 12, 12))[:2] == (records, groups)


@pytest.mark.parametrize("gamma", ["zero", "small", "small beside beta"])
@pytest.mark.usefixtures("wide")
def test_small_gammas_keep_the_input_as_well(gamma):
    """Half of the channels; x' would be infinitely wrong. Their x is counted."""
    model = Chain()
    with torch.no_grad():
        model.bn.weight[::2] = {"zero": 0.0, "small": 1e-30, "small beside beta": 1e-3}[gamma]
        model.bn.bias[::2] = {"zero": 0.3, "small": -0.1, "small beside beta": 1.0}[gamma]
    want, got, stats = both(model, images(16, 3, 12, 12))
    assert all(grad.isfinite().all() for grad in got.values())
    for name in ("bn.weight", "bn.bias", "conv1.weight", "conv2.weight"):
        assert (got[name] - want[name]).norm() < 0.04 * want[name].norm(), name
    assert (got["bn.weight"] - want["bn.weight"])[::2].norm() <= 0.04 * want["bn.weight"][::2].norm()
    values = 16 * 8 * 12 * 12
    group = values + 8 * 14 + values // 2 + 4 * 6 + 4 * 8  # copies with their parameters, numbers of the channels
    assert sum(record.bytes_compressed for record in stats.records[1:3]) == group


@pytest.mark.parametrize("change", ["before", "between"])
def test_a_result_that_is_changed_unseen_has_its_own_copy(change):
    """By a detached alias, which autograd does not notice: the copy of what it was would have other signs."""
    norm, conv = nn.BatchNorm2d(4), nn.Conv2d(4, 3, 1)
    x = images(4, 4, 8, 8).requires_grad_()
    at_norm, at_relu = [], []
    with actcodec.compress_activations(nn.ModuleList([norm, conv]), "blpa", bits=8) as stats:
        y = norm(x * 1.0)
        if change == "before":
            y.detach().neg_()
        y.register_hook(at_norm.append)
        r = y.relu()
        if change == "between":
            y.detach().neg_()
        r.register_hook(at_relu.append)
        loss = conv(r).sum()
    loss.backward()
    assert torch.equal(at_norm[0], at_relu[0] * (r.detach() > 0))
    assert (stats.records[1].bytes_compressed < 4 * 4 * 64) == (change == "between")


def test_a_tensor_that_a_loss_reads_is_exact_and_the_account_stays_right():
    model = Chain()
    target = images(4, 8, 8, 8, seed=5)
    with actcodec.compress_activations(model, "blpa", bits=8) as stats:
        r = model.act(model.bn(model.conv1(images(4, 3, 8, 8))))
        loss = F.mse_loss(r, target) + model.conv2(r).sum()
    loss.backward()
    records = {(record.op, record.codec): record for record in stats.records}
    values = 4 * 8 * 8 * 8
    assert records[("relu", "loss")].bytes_compressed == 4 * values
    assert records[("conv", "blpa-float")].bytes_compressed == values + 8 * 14


@pytest.mark.parametrize("inplace", [False, True])
def test_nothing_but_the_copy_stays(inplace):
    """Neither the input of normalisation nor the result is held, and the copy goes with the backward pass."""
    model = Chain("in place" if inplace else "module")
    memory = []
    for module in (model.conv1, model.bn):
        module.register_forward_hook(lambda _m, _i, out: memory.append(StorageWeakRef(out.untyped_storage())))
    with actcodec.compress_activations(model, "blpa") as stats:
        loss = model(images(4, 3, 8, 8)).sum()
    assert [one.expired() for one in memory] == [True, True]
    groups = [weakref.ref(one) for one in gc.get_objects() if type(one) is Group]
    assert len(groups) == 1
    before = stats.bytes_compressed
    loss.backward()
    assert groups[0]() is None
    assert stats.bytes_compressed == before
    assert loss.grad_fn is not None


def test_autocast():
    model = Chain()
    want, got, stats = both(model, images(8, 3, 12, 12), autocast=True)
    assert relative(want, got) < 0.04
    assert {record.dtype for record in stats.records} == {"bfloat16"}


def test_what_is_packed_is_not_changed():
    model, kept = Chain(), []
    for module in (model.conv1, model.bn, model.act, model.conv2):
        module.register_forward_hook(lambda _m, _i, out: kept.append((out, out.detach().clone(), out._version)))
    x = images(4, 3, 8, 8)
    with actcodec.compress_activations(model, "blpa"):
        model(x)
    assert torch.equal(x, images(4, 3, 8, 8))
    assert all(torch.equal(now, then) and now._version == version for now, then, version in kept)


def test_checkpointing_and_second_derivatives():
    """Inside a checkpoint nothing is packed, and what is recomputed is exact; a gradient of a gradient can be taken."""
    model, x = Chain(), images(4, 3, 8, 8).requires_grad_()
    want = torch.autograd.grad(model(x).square().sum(), x)[0]
    with actcodec.compress_activations(model, "blpa"):
        loss = checkpoint(model, x, use_reentrant=False).square()
    got = torch.autograd.grad(loss, x, torch.ones_like(loss))[0]
    assert 0 < (got - want).norm() < 0.15 * want.norm()  # the result is squared from a copy

    def penalty(bits):
        with actcodec.compress_activations(model, "blpa" if bits else "none", **({"bits": bits} if bits else {})):
            loss = model(x).sum()
        slope = torch.autograd.grad(loss, x, create_graph=True)[0]
        return torch.autograd.grad(slope.square().sum(), model.conv2.weight)[0]

    assert (penalty(8) - penalty(None)).norm() < 0.1 * penalty(None).norm()


def test_backward_twice_and_measured_errors():
    model = Chain()
    with actcodec.compress_activations(model, "blpa", bits=4, measure_error=True) as stats:
        loss = model(images(4, 3, 8, 8)).sum()
    loss.backward(retain_graph=True)
    first = gradients(model)
    model.zero_grad()
    loss.backward()
    assert all(torch.equal(first[name], grad) for name, grad in gradients(model).items())
    errors = [record.relative_error for record in stats.records if record.codec == "blpa-float"]
    # A uniform error in steps of 6 / 16 is 0.108 of the deviation; the ends add a little.
    assert all(0.09 < error < 0.16 for error in errors)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_what_is_not_finite_is_refused(value):
    norm = nn.BatchNorm2d(4).eval()
    x = images(2, 4, 5, 5).requires_grad_() * 1.0
    x.data[1, 2, 3, 4] = value
    strict = actcodec.compress_activations(norm, "blpa", nonfinite="raise")
    with strict, pytest.raises(NonFiniteError, match="channel 2"):
        norm(x)


def test_options():
    assert policy_options("blpa") == ("bits", "backend")
    with (
        pytest.raises(UserError, match="codec 'blpa-float' has no option 'gamma': use bits"),
        actcodec.compress_activations(nn.Module(), "blpa", gamma=1.0),
    ):
        pass
