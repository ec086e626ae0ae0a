"""Policy transformer on a language model with many tokens: components where they pay, and a training that converges."""

import copy

import actcodec
import pytest
import torch
from actcodec import codecs
from actcodec.policies.catalog import policy, policy_options
from actcodec.policies.groups.recomputation import RECOMPUTED_NAME
from actcodec.policies.tables.transformer import transformer_policy
from actcodec.study.diagnosis import Passes, distance, norm_of
from actcodec.study.gradient_similarity import cosine
from torch import nn
from torch.nn import functional as F

LETTERS, CONTEXT, WIDTH, HEADS, BATCH = 24, 32, 32, 4, 64


class Block(nn.Module):
    """A block of a transformer, normalised before its parts."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.heads, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.parts = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x):
        heads = self.heads(self.first(x)).unflatten(-1, (3, HEADS, -1)).unbind(2)
        query, key, value = (part.transpose(1, 2) for part in heads)
        found = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.out(found.transpose(1, 2).flatten(2))
        return x + self.parts(self.second(x))


class Gpt(nn.Module):
    def __init__(self):
        super().__init__()
        self.letters, self.places = nn.Embedding(LETTERS, WIDTH), nn.Embedding(CONTEXT, WIDTH)
        self.blocks = nn.Sequential(Block(), Block())
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, LETTERS)

    def forward(self, letters):
        x = self.letters(letters) + self.places.weight
        return self.head(self.norm(self.blocks(x)))


def batch(seed):
    """Return letters that follow from the two before them, in nine of ten places."""
    random = torch.Generator().manual_seed(seed)
    letters = torch.randint(LETTERS, (BATCH, CONTEXT + 1), generator=random)
    for place in range(2, CONTEXT + 1):
        follows = torch.rand(BATCH, generator=random) < 0.9
        found = (letters[:, place - 1] + 2 * letters[:, place - 2]) % LETTERS
        letters[:, place] = torch.where(follows, found, letters[:, place])
    return letters[:, :-1], letters[:, 1:]


def loss_of(model, seed):
    letters, targets = batch(seed)
    return F.cross_entropy(model(letters).flatten(0, 1), targets.flatten())


def train(model, steps, chosen=None):
    optimizer = torch.optim.AdamW(model.parameters(), 3e-3)
    losses = []
    for step in range(steps):
        optimizer.zero_grad()
        if chosen is None:
            loss = loss_of(model, step)
        else:
            with actcodec.compress_activations(model, chosen) as statistics:
                loss = loss_of(model, step)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses, None if chosen is None else statistics


@pytest.fixture(scope="module")
def trained():
    torch.manual_seed(0)
    model = Gpt()
    train(model, 60)
    return model


def by_steps(name, **options):
    """Return codecs of the policy without components, under the name that its rules go by: a codec factory."""
    if name != "feature-klt":
        return codecs.codec(name, **options)
    options.pop("heads", None)
    found = codecs.codec("feature-coded", **options)
    found.name = "feature-klt"
    return found


def test_components_take_fewer_bytes(trained):
    """A network of 32 features has little to cut; benchmarks/klt.py measures one of 256 at equal errors of the gradient."""
    passes = Passes(trained, lambda: loss_of(trained, 1000))
    exact = passes.gradient()
    found = {}
    for label, factory in (("components", None), ("steps", by_steps)):
        gradient, kept = passes.outcome(transformer_policy(factory))
        found[label] = distance(exact, gradient) / norm_of(exact), kept.ratio_of_everything
        assert cosine(exact, gradient) > 0.99
    assert found["components"][1] > found["steps"][1]
    assert found["components"][0] < 1.4 * found["steps"][0]


def test_queries_of_all_heads_are_components_of_one_token(trained):
    """Heads alone have 8 features; more components than these, or directions of 32 features, are those of all heads."""
    with actcodec.compress_activations(trained, "transformer") as statistics:
        loss_of(trained, 0)
    heads = [one for one in statistics.records if one.saved_by[0] == "attention" and one.codec != RECOMPUTED_NAME]
    assert len(heads) == 6
    assert all(one.codec == "feature-klt" for one in heads)
    values = torch.randn(BATCH, CONTEXT, 4, generator=torch.Generator().manual_seed(0)) @ torch.randn(4, WIDTH)
    x = values.view(BATCH, CONTEXT, HEADS, -1).transpose(1, 2).contiguous()
    form = policy("transformer").finer(0).compress(x)
    assert form.directions.shape == (WIDTH, 4)


def test_what_is_widened_takes_no_bytes(trained):
    with actcodec.compress_activations(trained, "transformer") as statistics:
        loss_of(trained, 0)
    wide = [one for one in statistics.records if one.shape[-1] == 4 * WIDTH]
    assert [one.op for one in wide] == ["linear", "gelu"] * 2
    assert all(one.codec == RECOMPUTED_NAME for one in wide)


def test_a_training_converges_as_without_compression():
    torch.manual_seed(0)
    model = Gpt()
    other = copy.deepcopy(model)
    exact, _ = train(model, 80)
    coded, statistics = train(other, 80, policy("transformer", backend="native"))
    assert sum(exact[-10:]) < 0.8 * sum(exact[:10])
    assert abs(sum(coded[-10:]) - sum(exact[-10:])) < 0.03 * sum(exact[-10:])
    assert statistics.ratio > 10


def test_options_are_those_of_the_codec_but_for_heads():
    assert set(policy_options("transformer")) == {"bits", "backend", "coder", "steps_of"}
