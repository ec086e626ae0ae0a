"""Inside other machinery of torch: autocast, accumulation, checkpoints (S21, S22), transforms (S25)."""

import warnings

import actcodec
import pytest
import torch
from actcodec.golden.dtype_names import dtype_name
from codecs_for_tests import ExactCodec
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint, checkpoint_sequential
from training_step import compressed_step, eight_bits, gradient_error, plain_step


def convnet():
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 4, 3), nn.Flatten(), nn.Linear(4 * 36, 5)
    )


def images_loss(model):
    return F.cross_entropy(model(torch.randn(4, 3, 8, 8)), torch.tensor([0, 1, 2, 3]))


@eight_bits
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("inside", [False, True])
def test_autocast(dtype, inside, which, options, bound):
    """Whichever context is the outer one: activations in 16 bits, weights' copies exact, and the same gradients."""
    model = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.GroupNorm(2, 8), nn.GELU(), nn.Conv2d(8, 4, 3), nn.Flatten())
    model.append(nn.Linear(4 * 36, 5))

    def autocast_loss(m):
        with torch.autocast("cpu", dtype):
            return images_loss(m)

    reference = plain_step(model, autocast_loss)
    if inside:
        step = compressed_step(model, autocast_loss, which, **options)
    else:
        with torch.autocast("cpu", dtype):
            step = compressed_step(model, images_loss, which, **options)
    rows = step.stats.tensors
    assert {row["dtype"] for row in rows if row["op"] == "conv"} == {dtype_name(dtype)}
    assert not any(row["shape"] in ([8, 3, 3, 3], [4, 8, 3, 3], [5, 144], [144, 5]) for row in rows)
    # 16-bit arithmetic alone is off by up to a hundredth.
    assert gradient_error(step, reference) < bound + 0.01


def test_gradient_accumulation_over_several_contexts():
    """Three contexts before one optimiser step, with a backward pass each, or with one for all."""
    model = convnet()
    batches = [torch.randn(4, 3, 8, 8) for _ in range(3)]

    def step(contexts):
        model.zero_grad()
        losses = []
        for x in batches:
            if contexts is None:
                losses.append(model(x).square().mean())
            else:
                with actcodec.compress_activations(model, ExactCodec()):
                    losses.append(model(x).square().mean())
            if contexts == "each":
                losses.pop().backward()
        if losses:
            sum(losses).backward()
        return [p.grad.clone() for p in model.parameters()]

    model.eval()  # the running statistics would change from step to step
    want = step(None)
    for contexts in ("each", "all"):
        for a, b in zip(step(contexts), want, strict=True):
            torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-7)


class Block(nn.Module):
    """Counts how often it runs."""

    def __init__(self, width=8):
        super().__init__()
        self.first, self.second, self.runs = nn.Linear(width, 16), nn.Linear(16, width), 0

    def forward(self, x):
        self.runs += 1
        return self.second(torch.tanh(self.first(x)))


class Checkpointed(nn.Module):
    def __init__(self, reentrant):
        super().__init__()
        self.before, self.block, self.reentrant = nn.Linear(8, 8), Block(), reentrant

    def forward(self, x):
        x = self.before(x)
        # The product saves the checkpoint's argument too, after it, and before it.
        return (x * x + checkpoint(self.block, x, use_reentrant=self.reentrant)) * x


@pytest.mark.parametrize("reentrant", [False, True])
def test_s21_what_a_checkpoint_begins_with_is_exact(reentrant):
    model, codec = Checkpointed(reentrant), ExactCodec()

    def loss_of(m):
        return m(torch.randn(4, 6, 8)).square().mean()

    reference = plain_step(model, loss_of)
    step = compressed_step(model, loss_of, codec)
    assert step.model.block.runs == 2
    assert gradient_error(step, reference) == 0
    # Compressed for the product before the checkpoint, then exact for both: one record.
    (record,) = (record for record in step.stats.records if "checkpoint" in record.saved_by)
    assert record.codec == "exact"
    assert record.bytes_compressed == record.bytes_original == 4 * 6 * 8 * 4
    assert (24, 16) not in codec.given  # nothing from within
    assert gradient_error(compressed_step(model, loss_of, "actnn-L2", bits=8), reference) < 0.02


@pytest.mark.parametrize("which", ["sfpr", "actnn-L2"])
def test_s21_what_is_computed_again_within_the_context_is_not_counted(which):
    x = torch.randn(64, 32)
    parts = [nn.Sequential(nn.Linear(32, 32), nn.GELU(), nn.LayerNorm(32)) for _ in range(4)]
    model = nn.Sequential(*parts)

    def step(reentrant, backward_of):
        """Counts, warnings and gradients of a step with backward inside the context, by a function, or else outside."""
        model.zero_grad()
        with warnings.catch_warnings(record=True) as said, actcodec.compress_activations(model, which) as stats:
            warnings.simplefilter("always")
            hidden = parts[0](x)
            for part in parts[1:3]:
                hidden = checkpoint(part, hidden, use_reentrant=reentrant)
            loss = parts[3](hidden).exp().mean()
            if backward_of is not None:
                backward_of(loss)
        if backward_of is None:
            loss.backward()
        gradient = torch.cat([parameter.grad.flatten() for parameter in model.parameters()])
        return stats.bytes_of_everything, len(stats.records), [str(one.message) for one in said], gradient.tolist()

    outside = step(False, None)
    assert not outside[2]
    for reentrant in (False, True):
        for backward_of in (None, torch.Tensor.backward, torch.autograd.backward):
            assert step(reentrant, backward_of) == outside


def test_s21_checkpoint_sequential():
    model = nn.Sequential(*(Block() for _ in range(4)))

    def loss_of(m):
        return checkpoint_sequential(m, 2, torch.randn(4, 8), use_reentrant=False).square().mean()

    step = compressed_step(model, loss_of, "sfpr", S=1.0)
    assert gradient_error(step, plain_step(model, loss_of)) < 0.02
    assert [block.runs for block in step.model] == [2, 2, 1, 1]  # the last part is not checkpointed


@pytest.mark.parametrize("reentrant", [False, True])
def test_s22_context_inside_a_checkpointed_function_warns(reentrant):
    """Without reentrance nothing is computed again. With it, the function's second run has gradients, and is compressed."""
    block, stats_of_runs = Block(), []

    def function(x):
        with actcodec.compress_activations(block, "sfpr", S=1.0) as stats:
            y = block(x)
        stats_of_runs.append(stats)
        return y

    x = torch.randn(4, 8, requires_grad=True)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        checkpoint(function, x, use_reentrant=reentrant).square().mean().backward()
    messages = [str(warning.message) for warning in caught if issubclass(warning.category, UserWarning)]
    if reentrant:
        assert messages == []
        assert [len(stats.records) for stats in stats_of_runs] == [0, 2]
    else:
        assert len(messages) == 1
        assert "inside a function of torch.utils.checkpoint" in messages[0]
        assert "open the context around the checkpoint" in messages[0]
        assert caught[0].filename == __file__
        assert [len(stats.records) for stats in stats_of_runs] == [2]
    reference = x.detach().clone().requires_grad_()
    block(reference).square().mean().backward()
    assert (x.grad - reference.grad).norm() < 0.04 * reference.grad.norm()


def test_s25_function_transforms_raise_in_torch():
    model = nn.Linear(8, 1)
    with (
        actcodec.compress_activations(model, "sfpr"),
        pytest.raises(RuntimeError, match=r"torch.func.*don't yet support saved tensor hooks"),
    ):
        torch.func.grad(lambda x: model(x).square().sum())(torch.randn(4, 8))
