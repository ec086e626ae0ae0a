"""S35: tensors that a codec cannot hold (NaN, infinity, numbers beyond a 16-bit form) are kept exactly, with one warning."""

import copy
import warnings
from itertools import product

import actcodec
import pytest
import torch
from actcodec.codecs import CODEC_NAMES, codec_options
from actcodec.golden.sfpr import NonFiniteError
from actcodec.policies.catalog import POLICY_NAMES
from actcodec.policies.few_bits import FewBitsWarning
from actcodec.study import diagnose
from actcodec.training import policy
from cdu_tools.errors import UserError
from torch import nn
from torch.nn import functional as F

EMPTY = nn.Module()
INFINITE, NAN = float("inf"), float("nan")
#: A number that 16-bit forms cannot hold.
LARGE = 3.4e38
LOSSLESS = ("none", "cdma", "vdnn", "actnn-L0")
policies = pytest.mark.parametrize("which", [name for name in POLICY_NAMES if name != "actnn-L5"])
pytestmark = pytest.mark.filterwarnings("ignore:actnn-L4 swaps", "ignore:vdnn moves", "ignore:policy auto cannot reach")


def network():
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.Conv2d(8, 8, 3, padding=1),
        nn.BatchNorm2d(8),
        nn.GELU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(8 * 16, 4),
    )


def gradients(model, x, codec=None, **options):
    """Gradients of one step, the warnings of its context, and its statistics."""
    model.zero_grad()
    if codec is None:
        loss, said, stats = model(x).square().mean(), [], None
    else:
        with warnings.catch_warnings(record=True) as said, actcodec.compress_activations(model, codec, **options) as stats:
            warnings.simplefilter("always")
            warnings.simplefilter("ignore", FewBitsWarning)
            loss = model(x).square().mean()
    loss.backward()
    return [p.grad.clone() for p in model.parameters()], [str(one.message) for one in said], stats


def distance(some, others):
    """Relative, of whole gradients."""
    pairs = list(zip(some, others, strict=True))
    return float(sum((a - b).square().sum() for a, b in pairs) / sum(b.square().sum() for _, b in pairs)) ** 0.5


@policies
def test_every_policy_goes_on_with_one_warning(which):
    """A bad step between good ones: its gradients are not finite, as without hooks, and the next step is as good as any."""
    torch.manual_seed(0)
    model, chosen, x = network(), policy(which), torch.randn(2, 3, 8, 8)
    spoilt = x.clone()
    spoilt[1, 2, 3, 4] = -INFINITE
    exact, _, _ = gradients(copy.deepcopy(model), x)
    _, said, _ = gradients(copy.deepcopy(model), x, chosen)
    assert not said
    got, said, stats = gradients(copy.deepcopy(model), spoilt, chosen)
    want, _, _ = gradients(copy.deepcopy(model), spoilt)
    assert [g.isfinite().all() for g in got] == [g.isfinite().all() for g in want]
    assert not got[0].isfinite().all()
    if which not in (*LOSSLESS, "brc"):
        assert len(said) == 1
        assert "1 of 384 values are NaN or infinite (channel 2 has 1): this tensor is kept exactly" in said[0]
        assert 'nonfinite="raise" raises instead' in said[0]
        assert (stats.records[0].codec, stats.records[0].bytes_compressed) == ("exact", spoilt.nbytes)
    after, said, stats = gradients(copy.deepcopy(model), x, chosen)
    assert not said
    # Policies that adapt themselves have learnt nothing from it: without the bad step they are as far from the exact gradient.
    undisturbed = policy(which)
    for _ in range(2):
        control, _, second = gradients(copy.deepcopy(model), x, undisturbed)
    assert stats.ratio > 0.8 * second.ratio
    assert distance(after, exact) < 1.3 * distance(control, exact) + 0.02


@policies
def test_the_gradient_is_the_exact_one_where_a_tensor_is_kept_exactly(which):
    """The arcus tangent saves its argument, of which infinity passes no gradient."""
    chosen = policy(which)
    for bad in (1.0, INFINITE, 2.0, -INFINITE):
        x = torch.linspace(-2, 2, 1024).view(2, 8, 8, 8).requires_grad_()
        filled = x.detach().masked_fill(torch.arange(8) > 6, bad)
        with warnings.catch_warnings(), actcodec.compress_activations(EMPTY, chosen):
            warnings.simplefilter("ignore")
            y = torch.atan(x.masked_fill(torch.arange(8) > 6, bad))
        y.sum().backward()
        if not filled.isfinite().all():
            exactly = filled.clone().requires_grad_()
            torch.atan(exactly).sum().backward()
            assert torch.equal(x.grad, exactly.grad)


@pytest.mark.parametrize("which", ["sfpr", "actnn", "autoquantz", "blpa"])
def test_softmax_by_hand_with_an_infinite_mask(which):
    """Attention in a common form: scores with -inf where they are masked, and softmax by hand."""
    torch.manual_seed(0)
    query, keys = torch.randn(2, 5, 8, requires_grad=True), torch.randn(2, 5, 8)
    mask = torch.triu(torch.full((5, 5), -INFINITE), 1)

    def loss():
        scores = query @ keys.transpose(1, 2) + mask
        largest = torch.logsumexp(scores, -1, keepdim=True)
        return (torch.exp(scores - largest) * torch.arange(5)).square().sum()

    def gradient(codec, **options):
        query.grad = None
        if codec is None:
            total = loss()
        else:
            # A logarithm's input is kept exactly for its own sake, without a warning.
            with warnings.catch_warnings(), actcodec.compress_activations(EMPTY, codec, **options):
                warnings.simplefilter("error")
                total = loss()
        total.backward()
        return query.grad.clone()

    want = gradient(None)
    got = gradient(which, **({"S": 1.0} if which == "sfpr" else {"bits": 8} if which in ("actnn", "blpa") else {}))
    assert float((got - want).norm()) < 0.05 * float(want.norm())


@pytest.mark.parametrize("which", ["sfpr", "actnn-L2", "blpa", "autoquant", "auto"])
def test_a_grad_scaler_skips_the_step_that_overflows(which):
    """float16 weights and activations; the loss overflows in the third step, and training goes on as without hooks."""

    def run(codec):
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 4))
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        scaler = torch.amp.GradScaler("cpu", init_scale=1024.0, growth_interval=100)
        chosen = None if codec is None else policy(codec)
        x, labels, scales, weights = torch.randn(16, 16), torch.arange(16) % 4, [], []
        for step in range(6):
            inputs = x * 60000 if step == 2 else x
            optimizer.zero_grad()
            with torch.autocast("cpu", torch.float16):
                if chosen is None:
                    loss = F.cross_entropy(model(inputs).float(), labels)
                else:
                    with warnings.catch_warnings(), actcodec.compress_activations(model, chosen):
                        warnings.simplefilter("ignore")
                        loss = F.cross_entropy(model(inputs).float(), labels)
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
            scales.append(scaler.get_scale())
            weights.append(model[0].weight.detach().clone())
        return scales, weights, float(loss.detach())

    want, got = run(None), run(which)
    assert got[0] == want[0] == [1024.0, 1024.0, 512.0, 512.0, 512.0, 512.0]
    assert torch.equal(got[1][1], got[1][2])  # the step was skipped
    assert not torch.equal(got[1][2], got[1][3])
    assert abs(got[2] - want[2]) < 0.1 * want[2]


@policies
def test_strict_on_request(which):
    x = torch.randn(2, 3, 8, 8)
    x[1, 2, 3, 4] = NAN
    model = network()
    lossless = which in LOSSLESS
    for codec in (which, policy(which)):
        with actcodec.compress_activations(model, codec, nonfinite="raise"):
            if lossless:
                model(x)
                continue
            with pytest.raises(
                NonFiniteError, match=r"NaN or infinite .*: correct the values, or leave out nonfinite=\"raise\""
            ) as raised:
                model(x)
            assert str(raised.value).startswith(("0: 1 of 384", "2: "))


def test_the_other_choices():
    x = torch.randn(2, 3, 8, 8)
    x[1, 2, 3, 4] = INFINITE
    model = network()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with actcodec.compress_activations(model, "sfpr", nonfinite="saturate") as stats:
            model(x)
    assert stats.records[0].codec == "sfpr"
    with pytest.warns(UserWarning, match="0: 1 of 384 values"), actcodec.compress_activations(model, "sfpr", nonfinite="exact"):
        model(x)
    with pytest.raises(NonFiniteError), actcodec.compress_activations(model, policy("sfpr", nonfinite="raise")):
        model(x)
    with (
        pytest.raises(UserError, match="nonfinite = 'ignore' is not allowed: use exact, raise or saturate"),
        actcodec.compress_activations(model, "sfpr", nonfinite="ignore"),
    ):
        pass
    with (
        pytest.raises(UserError, match="codec 'actnn-L2' has no option 'nonfinite'"),
        actcodec.compress_activations(model, "actnn-L2", nonfinite="saturate"),
    ):
        pass


@pytest.mark.parametrize("name", [name for name in CODEC_NAMES if name != "brc"])
@pytest.mark.parametrize("bad", [NAN, INFINITE, LARGE])
def test_every_codec_alone(name, bad):
    """A codec object for every activation; numbers that only 16-bit forms cannot hold too."""
    x = torch.randn(2, 4, 8, 8, requires_grad=True)
    other = torch.randn(2, 4, 8, 8)
    other[1, 2, 3, 4] = bad
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        with actcodec.compress_activations(EMPTY, actcodec.codec(name)) as stats:
            y = torch.atan(x + other).sum()
    y.backward()
    messages = [str(one.message) for one in said if "kept exactly" in str(one.message)]
    refused = stats.records[0].codec == "exact"
    assert len(messages) == refused
    if refused:
        exactly = (x + other).detach().requires_grad_()
        torch.atan(exactly).sum().backward()
        assert torch.allclose(x.grad, exactly.grad, rtol=0, atol=0, equal_nan=True)
    assert refused or bad == LARGE or name in ("none", "bypass", "cdma", "vdnn")


@pytest.mark.parametrize("backend", ["torch", "native"])
@pytest.mark.parametrize("name", [name for name in CODEC_NAMES if name != "brc"])
def test_values_at_the_end_of_a_format_stay_finite(name, backend):
    """A codec whose steps lead beyond the end of float16 gives way to the exact values, with a warning."""
    options = {"backend": backend} if "backend" in codec_options(name) else {}
    for dtype, sign in product((torch.float16, torch.bfloat16, torch.float32), (1, -1)):
        weight = torch.ones(2, 4, 8, 8, dtype=dtype, requires_grad=True)
        x = torch.randn(2, 4, 8, 8, dtype=dtype)
        x[1, 2, 3, 4] = sign * torch.finfo(dtype).max
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            with actcodec.compress_activations(EMPTY, actcodec.codec(name, **options)) as stats:
                y = (x.requires_grad_() * 1) * weight
        y.sum().backward()
        assert bool(weight.grad.isfinite().all())
        if any("kept exactly" in str(one.message) for one in said):
            assert "exact" in {record.codec for record in stats.records}
            assert torch.equal(weight.grad, x.detach())


def test_a_copy_of_what_is_kept_exactly_survives_a_change_in_place():
    """BLPA holds the input of a batch normalisation until its result is there; then it may have to keep it for good."""
    norm = nn.BatchNorm2d(4).eval()
    x = torch.randn(2, 4, 5, 5, requires_grad=True)
    y = x * 1
    y.data[0, 1, 2, 3] = INFINITE
    with pytest.warns(UserWarning, match="kept exactly"), actcodec.compress_activations(norm, "blpa") as stats:
        z = norm(y)
    y.data.zero_()
    (record,) = [record for record in stats.records if "norm" in record.saved_by]
    assert (record.codec, record.bytes_compressed) == ("exact", x.nbytes)
    z[:, 2:].sum().backward()
    assert x.grad[:, 2:].isfinite().all()
    assert norm.weight.grad[2:].abs().min() > 0


class Masked(nn.Sequential):
    """Layers with an infinite column beside the first layer's output."""

    def forward(self, x):
        hidden = self[0](x)
        masked = torch.cat([hidden, torch.full((12, 1), -INFINITE)], 1)
        return torch.atan(masked).sum() + self[2](self[1](hidden)).sum()


def test_errors_of_exact_tensors_are_zero_and_diagnosis_leaves_them_out():
    torch.manual_seed(0)
    model, x = Masked(nn.Linear(8, 8), nn.GELU(), nn.Linear(8, 1)), torch.randn(12, 8)

    def step():
        return model(x)

    with (
        pytest.warns(UserWarning, match="NaN or infinite"),
        actcodec.compress_activations(model, "sfpr", measure_error=True) as stats,
    ):
        step()
    assert {record.relative_error for record in stats.records if record.codec == "exact"} == {0.0}
    assert all(record.relative_error < 0.1 for record in stats.records)
    with pytest.warns(UserWarning, match="NaN or infinite"):
        found = diagnose(model, step, "sfpr")
    assert [tensor.module for tensor in found.tensors] == ["0", "1", "2"]
