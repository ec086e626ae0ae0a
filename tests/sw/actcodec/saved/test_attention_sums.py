"""Fused attention: the sums of its softmax are those of the queries and keys that backward sees."""

import actcodec
import pytest
import torch
from actcodec.saved.attention import RowSums
from torch import nn
from torch.nn import functional as F

HEADS, ROWS, COLUMNS, FEATURES = 4, 40, 24, 16
Copies = type(actcodec.codec("none"))


class Unsure(Copies):
    """A lossless codec that is not marked as such: the rebuilt L must be equal to the saved one."""

    lossless = False


def tensors(rows=ROWS, columns=COLUMNS, groups=HEADS, dtype=torch.float32, gain=1.0):
    generator = torch.Generator().manual_seed(0)
    shapes = (2, HEADS, rows, FEATURES), (2, groups, columns, FEATURES), (2, groups, columns, FEATURES)
    return [(torch.randn(shape, generator=generator) * gain).to(dtype).requires_grad_() for shape in shapes]


def gradients(run, leaves, codec=None):
    if codec is None:
        result = run(*(leaf * 1 for leaf in leaves))
    else:
        with actcodec.compress_activations(nn.Module(), codec):
            result = run(*(leaf * 1 for leaf in leaves))
    towards = torch.randn(result.shape, generator=torch.Generator().manual_seed(1))
    return torch.autograd.grad(result, leaves, towards.to(result.dtype))


@pytest.fixture
def rebuilt(monkeypatch):
    """The tensors L that were computed again."""
    made, tensor = [], RowSums.tensor

    def recorded(self):
        made.append(tensor(self))
        return made[-1]

    monkeypatch.setattr(RowSums, "tensor", recorded)
    return made


def random_mask(rows=ROWS, columns=COLUMNS):
    mask = torch.rand(rows, columns, generator=torch.Generator().manual_seed(2)) > 0.5
    mask[3] = False  # nothing is left of this row
    return mask


def assert_same(found, exact, tolerance=1e-5):
    for mine, other in zip(found, exact, strict=True):
        assert (mine - other).norm() <= tolerance * other.norm()


@pytest.mark.parametrize(
    ("options", "made"),
    [
        ({}, {}),
        ({"is_causal": True}, {}),
        ({"is_causal": True}, {"columns": 56}),
        ({"scale": 0.7}, {}),
        ({"attn_mask": random_mask()}, {}),
        ({"attn_mask": random_mask(2 * HEADS * ROWS).view(2, HEADS, ROWS, COLUMNS)}, {}),
        ({"attn_mask": torch.linspace(-3, 3, ROWS * COLUMNS).view(ROWS, COLUMNS)}, {}),
        ({"attn_mask": torch.linspace(-3, 3, 2 * COLUMNS).view(2, 1, 1, COLUMNS)}, {}),
        ({"enable_gqa": True}, {"groups": 2}),
        ({"enable_gqa": True, "is_causal": True, "scale": 0.1}, {"groups": 1}),
        ({}, {"rows": 1, "columns": 300}),
        ({}, {"rows": 300, "columns": 1}),
    ],
)
def test_sums_of_what_is_exact_are_those_saved(options, made, rebuilt):
    def run(query, key, value):
        return F.scaled_dot_product_attention(query, key, value, **options)

    leaves = tensors(**made)
    assert_same(gradients(run, leaves, Unsure()), gradients(run, leaves))
    assert len(rebuilt) == 1


def test_arguments_by_position(rebuilt):
    def run(query, key, value):
        return F.scaled_dot_product_attention(query, key, value, None, 0.0, True)

    leaves = tensors()
    assert_same(gradients(run, leaves, Unsure()), gradients(run, leaves))
    assert len(rebuilt) == 1


@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize("causal", [False, True])
def test_within_the_module(padded, causal, rebuilt):
    torch.manual_seed(3)
    module = nn.MultiheadAttention(32, HEADS, batch_first=True)
    padding = torch.arange(ROWS) >= torch.tensor([[ROWS], [ROWS - 9]]) if padded else None
    mask = nn.Transformer.generate_square_subsequent_mask(ROWS) if causal else None

    def run(x):
        return module(x, x, x, need_weights=False, key_padding_mask=padding, attn_mask=mask, is_causal=causal)[0]

    x = torch.randn(2, ROWS, 32, requires_grad=True)
    assert_same(gradients(run, [x], Unsure()), gradients(run, [x]))
    assert len(rebuilt) == 1


def test_half_precision(rebuilt):
    leaves = tensors(dtype=torch.bfloat16)
    attention = F.scaled_dot_product_attention
    assert_same(gradients(attention, leaves, Unsure()), gradients(attention, leaves), 1e-2)
    assert rebuilt[0].dtype == torch.float32


@pytest.mark.parametrize("codec", ["sfpr", "jpeg-act"])
def test_probabilities_are_those_of_what_is_rebuilt(codec, rebuilt):
    leaves = tensors(rows=64, columns=64, gain=3.0)
    *_, of_values = gradients(F.scaled_dot_product_attention, leaves, actcodec.codec(codec))
    query, key, _ = (actcodec.codec(codec).compress(leaf.detach()).decompress() for leaf in leaves)
    probabilities = torch.softmax(query @ key.mT / FEATURES**0.5, -1)
    towards = torch.randn(2, HEADS, 64, FEATURES, generator=torch.Generator().manual_seed(1))
    assert_same([of_values], [probabilities.mT @ towards])
    assert len(rebuilt) == 1


@pytest.mark.parametrize("options", [{}, {"is_causal": True}, {"scale": 0.5}])
def test_few_bits_and_large_logits_overflow_no_more(options):
    def run(query, key, value):
        return F.scaled_dot_product_attention(query, key, value, **options)

    for found, exact in zip(gradients(run, tensors(gain=6.0), "actnn-L3"), gradients(run, tensors(gain=6.0)), strict=True):
        assert found.isfinite().all()
        assert found.norm() < 100 * exact.norm()  # with the sums of the exact logits infinite, or NaN


@pytest.mark.parametrize("codec", ["none", "brc", "cdma"])
def test_nothing_is_computed_again_of_what_is_exact(codec, rebuilt):
    leaves = tensors()
    for mine, other in zip(
        gradients(F.scaled_dot_product_attention, leaves, codec), gradients(F.scaled_dot_product_attention, leaves), strict=True
    ):
        assert torch.equal(mine, other)
    assert not rebuilt


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("module", [False, True])
def test_float_copies_of_boolean_masks_take_a_bit(module, dtype):
    """Torch makes such a copy in each layer; the gradients are those with the copy as it is."""
    torch.manual_seed(3)
    layer, x = nn.MultiheadAttention(32, 2, batch_first=True, dtype=dtype), torch.randn(3, 40, 32, dtype=dtype)
    seen = torch.arange(40) < torch.tensor([40, 31, 9])[:, None]
    found = []
    for mask in (seen[:, None, None], torch.where(seen, 0.0, -torch.inf).to(dtype)[:, None, None]):
        layer.zero_grad()
        with actcodec.compress_activations(layer, "int8-rows") as stats:
            if module:
                y = layer(x, x, x, need_weights=False, key_padding_mask=~seen if mask.dtype == torch.bool else mask[:, 0, 0])[0]
            else:
                q, k, v = F.linear(x, layer.in_proj_weight).unflatten(2, (3, 2, -1)).permute(2, 0, 3, 1, 4)
                y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask.expand(-1, 1, 40, -1).contiguous())
            loss = y.float().square().mean()
        loss.backward()
        found.append((layer.in_proj_weight.grad, stats.not_counted.get("statistics and copies within operations", 0)))
    assert torch.equal(found[0][0], found[1][0])
    if not module:
        sums = 3 * 2 * 40 * 4
        assert found[0][1] <= 3 * 40 * 40 // 8 + 4 + sums
