"""S33: memory that operations save in several shapes is compressed once, counted once, and comes back in each of the shapes."""

import contextlib
import copy

import actcodec
import pytest
import torch
from actcodec.policies.catalog import POLICY_NAMES
from actcodec.saved.cache import Memory, TensorCache
from actcodec.saved.layout import Layout
from actcodec.training import Policy, Rule, policy
from codecs_for_tests import ExactCodec
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.nn import functional as F

EMPTY = nn.Module()
SHAPE = (4, 6, 8, 10)
BYTES = 4 * 4 * 6 * 8 * 10
#: Shapes in which all values of a contiguous tensor of four axes are seen without a copy.
WHOLE = {
    "itself": lambda y: y,
    "view": lambda y: y.view(4 * 6, 8 * 10),
    "transposed": lambda y: y.transpose(1, 2),
    "attention": lambda y: y.transpose(1, 2).transpose(1, 2).reshape(24, 80),
    "permuted": lambda y: y.permute(3, 0, 2, 1),
    "more axes": lambda y: y.unflatten(1, (2, 3)).unsqueeze(3),
    "expanded": lambda y: y.unsqueeze(1).expand(-1, 3, -1, -1, -1),
}
PARTS = {"half": lambda y: y[1:3], "columns": lambda y: y[..., 2:9], "every other": lambda y: y[:, ::2]}
whole, parts = pytest.mark.parametrize("second", WHOLE), pytest.mark.parametrize("second", PARTS)


def squares(codec, *shapes, x=None, **options):
    """Gradient of the sum of squares of a tensor in some shapes, and the statistics; without hooks when there is no codec.

    The square saves its argument; with shape i goes the factor i + 1.
    """
    x = torch.randn(SHAPE) if x is None else x
    x = x.clone().requires_grad_()
    y, stats = x * 1, None

    def loss():
        return sum((factor * shape(y) ** 2).sum() for factor, shape in enumerate(shapes, 1))

    if codec is None:
        total = loss()
    else:
        with actcodec.compress_activations(EMPTY, codec, **options) as stats:
            total = loss()
    total.backward()
    return x.grad, stats


@whole
@pytest.mark.parametrize("first", WHOLE)
def test_two_shapes_of_one_tensor_are_kept_once(first, second):
    codec, x = ExactCodec(), torch.randn(SHAPE)
    got, stats = squares(codec, WHOLE[first], WHOLE[second], x=x)
    want, _ = squares(None, WHOLE[first], WHOLE[second], x=x)
    assert torch.equal(got, want)
    assert (len(codec.given), len(stats.records), stats.bytes_original) == (1, 1, BYTES)


@pytest.mark.parametrize("which", ["sfpr", "actnn", "gist", "cdma", "blpa", "autoquant", "auto"])
def test_the_shapes_see_one_reconstruction(which):
    """Squares by the first shape alone show the reconstruction."""
    x = torch.randn(SHAPE)
    alone, before = squares(policy(which), WHOLE["itself"], x=x)
    got, stats = squares(policy(which), *(WHOLE[name] for name in WHOLE if name != "expanded"), x=x)
    torch.testing.assert_close(got, alone * sum(range(1, len(WHOLE))), rtol=1e-5, atol=0)
    assert (stats.bytes_original, stats.bytes_compressed) == (before.bytes_original, before.bytes_compressed)


@parts
def test_parts_of_a_quarter_and_more_are_seen_in_the_whole(second):
    codec, x = ExactCodec(), torch.randn(SHAPE)
    got, stats = squares(codec, WHOLE["permuted"], PARTS[second], x=x)
    assert torch.equal(got, squares(None, WHOLE["permuted"], PARTS[second], x=x)[0])
    assert (len(codec.given), stats.bytes_original) == (1, BYTES)


def test_small_parts_are_kept_apart():
    """To decompress everything for each of many small parts would take long."""
    codec, x = ExactCodec(), torch.randn(40, 64)
    steps = [lambda y, row=row: y[row : row + 1] for row in range(40)]
    got, stats = squares(codec, lambda y: y, *steps, x=x)
    assert torch.equal(got, squares(None, lambda y: y, *steps, x=x)[0])
    assert len(codec.given) == len(stats.records) == 41
    assert codec.decompressed == 41


def test_parts_before_the_whole_and_beside_one_another():
    x = torch.randn(SHAPE)
    halves = [lambda y: y[:2], lambda y: y[2:], lambda y: y[:2].reshape(12, 80)]
    codec = ExactCodec()
    got, stats = squares(codec, *halves, x=x)
    assert torch.equal(got, squares(None, *halves, x=x)[0])
    assert (len(codec.given), stats.bytes_original) == (2, BYTES)


@pytest.mark.parametrize("layout", ["gaps", "channels last"])
def test_other_first_layouts(layout):
    x = torch.randn(4, 6, 8, 20)
    first = {"gaps": lambda y: y[..., ::2], "channels last": lambda y: y.contiguous(memory_format=torch.channels_last)}[layout]
    kept = []

    def shape(y):
        if not kept:
            kept.append(first(y))
        return kept[0]

    views = [shape, lambda y: shape(y).permute(0, 2, 3, 1), lambda y: shape(y)[1:3], lambda y: shape(y).transpose(0, 1)]
    codec = ExactCodec()
    got, _ = squares(codec, *views, x=x)
    kept.clear()
    assert torch.equal(got, squares(None, *views, x=x)[0])
    # The cache finds no part of a tensor with gaps.
    assert len(codec.given) == (2 if layout == "gaps" else 1)


@settings(max_examples=60, deadline=None)
@given(st.data(), st.integers(0, 2**31))
def test_any_sequence_of_views(data, seed):
    """Shapes drawn at random: gradients to the last bit, and never more bytes than distinct shapes have."""

    def view(y):
        for _ in range(data.draw(st.integers(0, 3))):
            kind, axis = data.draw(st.sampled_from(["transpose", "slice", "flatten", "split", "unfold"])), 0
            axis = data.draw(st.integers(0, y.ndim - 1))
            if kind == "transpose":
                y = y.transpose(axis, data.draw(st.integers(0, y.ndim - 1)))
            elif kind == "slice":
                start = data.draw(st.integers(0, y.shape[axis] - 1))
                y = y.narrow(axis, start, data.draw(st.integers(1, y.shape[axis] - start)))
            elif kind == "flatten" and y.is_contiguous():
                y = y.flatten(axis)
            elif kind == "split" and y.shape[axis] % 2 == 0:
                y = y.unflatten(axis, (2, -1))
            elif kind == "unfold":
                y = y.unfold(axis, min(2, y.shape[axis]), 1)
        return y

    chosen = [[] for _ in range(data.draw(st.integers(2, 4)))]
    probe = torch.empty(4, 6, 8)
    for places in chosen:
        seen = view(probe)
        places += [tuple(seen.shape), seen.stride(), seen.storage_offset()]
    shapes = [lambda y, at=at: y.as_strided(*at) for at in map(tuple, chosen)]
    x = torch.randn(4, 6, 8, generator=torch.Generator().manual_seed(seed))
    codec = ExactCodec()
    got, stats = squares(codec, *shapes, x=x)
    assert torch.equal(got, squares(None, *shapes, x=x)[0])
    regions = {(at[2], Layout(at[0], at[1], x.dtype, x.device).joined_axes) for at in map(tuple, chosen)}
    assert len(stats.records) <= len(regions)


@pytest.mark.parametrize("keep_signs", [False, True])
def test_a_stronger_form_serves_all_shapes(keep_signs):
    """Signs, then values, then exact, each in another shape; the first operation sees the last form."""
    x, weights = torch.randn(4, 8, 8, 8), torch.randn(5, 8)
    signs = Rule("brc", producer=("relu",), consumer=("relu",))

    def run(codec):
        linear, start = nn.Linear(8, 5, bias=False), x.clone().requires_grad_()
        linear.weight.data = weights.clone()
        y, stats = start * 1, None

        def loss():
            rectified = F.relu(y)
            return linear(rectified.view(-1, 8)).sum() + torch.atan(rectified.transpose(0, 3)).sum()

        if codec is None:
            total = loss()
        else:
            with actcodec.compress_activations(linear, codec, compress_loss=True) as stats:
                total = loss()
        total.backward()
        return (start.grad, linear.weight.grad), stats

    want, _ = run(None)
    atan_exact = Policy((Rule("exact", consumer=("atan",)), signs), default="sfpr", keep_signs=keep_signs)
    got, stats = run(atan_exact)
    assert all(torch.equal(a, b) for a, b in zip(got, want, strict=True))
    (record,) = stats.records
    assert (record.codec, record.saved_by) == ("exact", ("relu", "linear", "atan"))
    got, stats = run(Policy((signs,), default="sfpr", keep_signs=keep_signs))
    (record,) = stats.records
    assert (record.codec, record.saved_by) == ("sfpr", ("relu", "linear", "atan"))
    assert (record.bytes_compressed > x.numel() * 9 / 8) == keep_signs
    # With its signs ReLU's gradient is zero exactly where it is zero without compression.
    if keep_signs:
        assert torch.equal(got[0] == 0, want[0] == 0)


def test_a_version_of_its_own_after_a_change_in_place():
    def run(codec):
        x = torch.arange(24.0).view(4, 6).requires_grad_()
        y = x * 1

        def loss():
            first = (y**2).sum()
            y.mul_(3)
            return first + (y.t() ** 2).sum()

        if codec is None:
            y, z = x * 1, x * 3
            return torch.autograd.grad((y**2).sum() + (z**2).sum(), x)[0], None
        with actcodec.compress_activations(EMPTY, codec, min_bytes=0) as stats:
            total = loss()
        return torch.autograd.grad(total, x)[0], stats

    got, stats = run(ExactCodec())
    assert torch.equal(got, run(None)[0])
    assert stats.bytes_original == 2 * 96


def test_an_exact_view_of_what_is_changed_in_place_raises():
    x = torch.randn(4, 6, requires_grad=True)
    with actcodec.compress_activations(EMPTY, "none") as stats:
        y = x * 1
        first, second = (y**2).sum(), (y.t() ** 2).sum()
    assert stats.bytes_original == 96
    y.detach().add_(1)
    for loss in (first, second):
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            loss.backward()


def test_memory_that_is_used_again_in_another_shape_is_not_mistaken():
    x = torch.randn(64, 32, requires_grad=True)
    addresses, total, squares = [], torch.zeros(()), 0.0
    shapes = (lambda y: y, lambda y: y.t(), lambda y: y.view(16, 128))
    with actcodec.compress_activations(EMPTY, ExactCodec()):
        while len(addresses) < 20 or len(set(addresses)) == len(addresses) < 2000:
            factor = 1 + len(addresses) / 64
            y = shapes[len(addresses) % 3](x * factor)
            addresses.append(y.data_ptr())
            total = total + (y**2).sum()
            squares += factor**2
            del y
    assert len(set(addresses)) < len(addresses)
    total.backward()
    torch.testing.assert_close(x.grad, 2.0 * squares * x.detach())


@pytest.mark.parametrize("codec", ["none", "sfpr", "brc"])
def test_conjugates_and_negations_of_the_same_memory_are_not_mistaken(codec):
    """``x.conj()`` and ``x.conj().imag`` have the memory of x, and other values."""

    def gradient(context):
        x = torch.complex(torch.linspace(0.5, 1.5, 12), torch.linspace(1.5, 0.5, 12)).view(3, 4).requires_grad_()
        y = x * 1
        with context:
            real = (y * y).sum() + (y.conj() * y.conj() * 2j).sum()
            loss = real.real + (y.imag**3).sum() + ((y.conj().imag) ** 3 * 5).sum()
        loss.backward()
        return x.grad

    want = gradient(contextlib.nullcontext())
    got = gradient(actcodec.compress_activations(EMPTY, codec))
    torch.testing.assert_close(got, want, rtol=0.1, atol=0.2)


def test_nothing_lives_on_in_the_cache():
    class Entry:
        pass

    cache, x = TensorCache(), torch.randn(4, 6)
    entry = Entry()
    cache.put(Memory(x), entry)
    assert cache.get(Memory(x.t())).entry is entry
    assert cache.whole(Memory(x[1:])).entry is entry
    assert cache.get(Memory(x[1:])) is None
    assert cache.get(Memory(x.view(torch.int32))) is None
    assert len(cache) == 1
    del entry
    assert len(cache) == 0
    assert cache.get(Memory(x)) is None
    assert cache.whole(Memory(x[1:])) is None


class Attention(nn.Module):
    """As transformers and torchvision write it: the linear layer sees the result of the attention in another shape."""

    def __init__(self):
        super().__init__()
        self.qkv, self.out, self.norm = nn.Linear(32, 96), nn.Linear(32, 32), nn.LayerNorm(32)

    def forward(self, x):
        q, k, v = self.qkv(self.norm(x)).unflatten(-1, (3, 4, 8)).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v)
        return x + self.out(y.transpose(1, 2).flatten(2))


@pytest.mark.filterwarnings("ignore:actnn-L4 swaps", "ignore:vdnn moves", "ignore:policy auto cannot reach")
@pytest.mark.parametrize("which", [name for name in POLICY_NAMES if name != "actnn-L5"])
def test_every_policy_takes_what_two_shapes_share(which):
    """Two steps, so that the policy's knowledge of the readers serves the next one; convolution and linear layer share too."""
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Conv2d(3, 32, 3, padding=1), nn.BatchNorm2d(32), nn.Flatten(2), Transposed(), Attention(), nn.Flatten(), nn.ReLU()
    )
    model.append(nn.Linear(32 * 64, 5))
    chosen, x = policy(which), torch.randn(2, 3, 8, 8)
    for _ in range(2):
        reference = copy.deepcopy(model)
        reference(x).square().mean().backward()
        model.zero_grad()
        with actcodec.compress_activations(model, chosen) as stats:
            loss = model(x).square().mean()
        loss.backward()
        pairs = list(zip(model.parameters(), reference.parameters(), strict=True))
        assert all(a.grad.isfinite().all() for a, _ in pairs)
        if which in ("none", "brc", "cdma", "vdnn"):
            assert all(torch.equal(a.grad, b.grad) for a, b in pairs)
    attention = [record for record in stats.records if record.op == "attention"]
    assert len(attention) == 1
    assert set(attention[0].saved_by) == {"attention", "linear"}


class Transposed(nn.Module):
    def forward(self, x):
        return x.transpose(1, 2)


def test_layers_that_see_other_channels_bound_one_error():
    """AC-GC has an error for each channel of a batch normalisation; here two see the same values in other channels."""
    torch.manual_seed(0)
    first, second, linear = nn.BatchNorm2d(6), nn.BatchNorm1d(48), nn.Linear(48, 48)
    model = nn.ModuleList([first, second, linear])
    chosen = policy("autoquant", interval=1)
    for _ in range(3):
        x = torch.randn(16, 6, 8, requires_grad=True)
        with actcodec.compress_activations(model, chosen) as stats:
            y = x * 1.5
            z = first(y.view(16, 6, 8, 1)).view(16, 48) + second(y.view(16, 48))
            loss = linear(z).square().mean()
        loss.backward()
        assert x.grad.isfinite().all()
    assert [record.saved_by for record in stats.records if record.op == "mul"] == [("norm",)]
    assert chosen.layers[0].error is not None
