"""2-norms: their arguments are compressed, but for groups of values that are small beside the codec's error."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from training_step import compressed_step, gradient_error, plain_step

SHAPE = ROWS, WIDTH = 64, 128
#: Functions of (64, 128), by the axes along which norms are taken.
BY_NORM = {
    "vector_norm": lambda h: h / torch.linalg.vector_norm(h, dim=1, keepdim=True),
    "vector_norm of everything": lambda h: h / torch.linalg.vector_norm(h),
    "linalg.norm": lambda h: h / torch.linalg.norm(h, dim=1, keepdim=True),
    "matrix_norm": lambda h: h.view(8, 8, WIDTH) / torch.linalg.matrix_norm(h.view(8, 8, WIDTH), keepdim=True),
    "Tensor.norm": lambda h: h / h.norm(dim=1, keepdim=True),
    "torch.norm": lambda h: h / torch.norm(h, 2, 1, True),
    "Tensor.norm of everything": lambda h: h / h.norm(),
    "normalize": lambda h: F.normalize(h, dim=1),
    "std": lambda h: h / h.std(1, keepdim=True),
    "std, all": lambda h: h / h.std(False),
    "std_mean": lambda h: h / torch.std_mean(h, 1, keepdim=True)[0],
}
#: Norms with other gradients, and functions that are close to a norm.
OTHERS = {
    "spectral": lambda h: torch.linalg.norm(h, 2),
    "spectral, over two axes": lambda h: torch.linalg.norm(h.view(8, 8, WIDTH), 2, (1, 2)),
    "nuclear": lambda h: h.norm("nuc"),
    "1": lambda h: torch.linalg.vector_norm(h, 1, dim=1),
    "3": lambda h: h.norm(3, dim=1),
    "infinite": lambda h: h.norm(torch.inf, dim=1),
    "normalised by the sum": lambda h: F.normalize(h, p=1),
    "cosine_similarity": lambda h: F.cosine_similarity(h, h.roll(1, 0), dim=1),
    "distances": lambda h: torch.cdist(h, h.roll(1, 0)),
}


class Computed(nn.Module):
    """A function of a linear layer's results, or, with ``width`` 0, of a sum with a parameter, which has their gradient."""

    def __init__(self, function, width=WIDTH):
        super().__init__()
        torch.manual_seed(1)
        self.before = nn.Linear(width, width) if width else None
        self.term = nn.Parameter(torch.zeros(SHAPE))
        self.function = function

    def forward(self, x):
        return self.function(self.term + x if self.before is None else self.before(x))


def loss_of(found):
    generator = torch.Generator().manual_seed(2)
    return (found * torch.randn(found.shape, generator=generator)).sum() / found.numel() ** 0.5


def steps(model, x, policy, **options):
    """Without and with compression."""

    def loss(one):
        return loss_of(one(x))

    return plain_step(model, loss), compressed_step(model, loss, policy, **options)


@pytest.mark.parametrize("name", BY_NORM)
def test_arguments_are_compressed_and_gradients_are_those_of_the_codec(name):
    torch.manual_seed(0)
    plain, step = steps(Computed(BY_NORM[name]), torch.randn(SHAPE), "sfpr", compress_loss=True)
    large = [one for one in step.stats.records if one.bytes_original == 4 * ROWS * WIDTH]
    assert {one.codec for one in large} == {"sfpr"}
    assert gradient_error(step, plain) < 0.02
    assert step.stats.ratio > 3


@pytest.mark.parametrize("name", OTHERS)
def test_other_norms_bear_no_errors(name):
    torch.manual_seed(0)
    _, step = steps(Computed(OTHERS[name]), torch.randn(SHAPE), "sfpr")
    assert {one.codec for one in step.stats.records if one.saved_by not in (("linear",), ("mul",))} <= {"exact", "bits"}


def row_by_row(size):
    """Every eighth row smaller than the others by this factor, the last one zero."""
    x = torch.randn(SHAPE)
    x[::8] *= size
    x[-1] = 0
    return x


@pytest.mark.parametrize("size", [0.3, 1e-2, 1e-3, 1e-6])
@pytest.mark.parametrize("name", ["vector_norm", "Tensor.norm", "normalize"])
@pytest.mark.parametrize("policy", ["sfpr", "blpa-coded", "transformer", "actnn-L2"])
def test_small_norms_keep_their_gradient(policy, name, size):
    """Codecs have a scale for each column, or for all, which leaves nothing, or noise, of columns small beside others."""
    torch.manual_seed(0)
    function = {
        "vector_norm": lambda h: torch.linalg.vector_norm(h, dim=1),
        "Tensor.norm": lambda h: h.norm(dim=1),
        "normalize": lambda h: F.normalize(h, dim=1),
    }[name]
    plain, step = steps(Computed(function, width=0), row_by_row(size), policy)
    exact, got = (one.gradients["term"] for one in (plain, step))
    cosines = F.cosine_similarity(exact, got, dim=1)
    assert cosines[exact.norm(dim=1) > 0].min() > 0.8
    assert F.cosine_similarity(exact[::8].flatten(), got[::8].flatten(), dim=0) > 0.95
    assert got.norm() < 1.5 * exact.norm()


def test_a_row_without_deviation_has_no_gradient():
    torch.manual_seed(0)
    x = torch.randn(SHAPE)
    x[3] = 5.0
    plain, step = steps(Computed(lambda h: h.std(1), width=0), x, "sfpr")
    exact, got = (one.gradients["term"] for one in (plain, step))
    assert torch.equal(got[3], exact[3])
    assert F.cosine_similarity(exact.flatten(), got.flatten(), dim=0) > 0.999


def test_exact_groups_are_counted():
    torch.manual_seed(0)
    model = Computed(lambda h: torch.linalg.vector_norm(h, dim=1), width=0)
    (_, all_large), (_, some_small) = (steps(model, row_by_row(size), "transformer") for size in (0.9, 1e-4))
    kept = [next(one for one in step.stats.records if "vectornorm" in one.saved_by) for step in (all_large, some_small)]
    exact = 4 * WIDTH * ROWS // 8 + ROWS
    assert abs(kept[1].bytes_compressed - kept[0].bytes_compressed - exact) < exact / 2


def test_autocasts_copy_is_compressed():
    model, x = Computed(lambda h: h / h.norm(dim=1, keepdim=True)), torch.randn(SHAPE)

    def loss(one):
        with torch.autocast("cpu", torch.bfloat16):
            found = one(x)
        return loss_of(found.float())

    step = compressed_step(model, loss, "sfpr")
    normed = [one for one in step.stats.records if "vectornorm" in one.saved_by and one.shape == SHAPE]
    assert [one.codec for one in normed] == ["sfpr"]
