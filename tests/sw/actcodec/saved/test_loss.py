"""Losses are told from networks: the table has the word ``loss``, with the bytes as they are."""

import actcodec
import pytest
import torch
from torch import nn
from torch.nn import functional as F


def network():
    return nn.Sequential(nn.Linear(16, 32), nn.SiLU(), nn.Linear(32, 16))


def by_hand(y):
    return ((y - 1) ** 2 + 1e-3).sqrt().mean()


class Scaled(nn.Module):
    """A module that multiplies two numbers for each value."""

    def forward(self, x):
        return (x + 1) * (x - 1)


class ScaledCriterion(Scaled):
    """The same one, called a criterion."""


class WithNetwork(nn.Module):
    """A module with a network in it and code of its own."""

    def __init__(self):
        super().__init__()
        self.network = network()

    def forward(self, x):
        y = self.network(x)
        return (y + 1) * (y - 1)


class WithNetworkLoss(WithNetwork):
    """The same one, called a loss."""


def statistics(model, step, **options):
    with actcodec.compress_activations(model, "sfpr", min_bytes=0, **options) as stats:
        loss = step(model)
    loss.backward()
    return stats


def codecs(stats, saved_by):
    """Return the codecs of all tensors that an operation has saved."""
    return {record.codec for record in stats.records if saved_by in record.saved_by}


def x():
    return torch.randn(8, 16, requires_grad=True)


def test_a_loss_by_hand_is_named_and_counted():
    stats = statistics(network(), lambda m: by_hand(m(x())))
    rows = [row for row in stats.tensors if row["codec"] == "loss"]
    assert {row["name"] for row in rows} == {""}
    assert sum(row["bytes_compressed"] for row in rows) == 2 * 8 * 16 * 4  # the difference and the root
    assert sum(row["bytes_original"] for row in rows) == 2 * 8 * 16 * 4
    assert codecs(stats, "linear") == {"sfpr"}
    assert " loss " in stats.table()


def test_it_is_compressed_on_request():
    stats = statistics(network(), lambda m: by_hand(m(x())), compress_loss=True)
    assert "loss" not in {record.codec for record in stats.records}


def test_lossless_forms_and_what_a_rule_names_are_as_elsewhere():
    model, labels = nn.Linear(16, 16), torch.randint(0, 16, (8,))
    assert codecs(statistics(model, lambda m: m(x()).clamp(-1, 1).sum()), "clamp") == {"bits"}
    assert codecs(statistics(model, lambda m: F.cross_entropy(m(x()), labels)), "loss") == {"loss"}
    with actcodec.compress_activations(model, "transformer", min_bytes=0) as stats:
        F.cross_entropy(model(x()), labels)
    assert codecs(stats, "loss") == {"bf16"}


def test_before_the_model_there_is_no_loss():
    stats = statistics(network(), lambda m: m(torch.exp(x())).mean())
    assert codecs(stats, "exp") == {"sfpr"}


def test_a_model_of_functions_is_never_called():
    model = nn.ParameterList([nn.Parameter(torch.randn(16, 16)) for _ in range(2)])
    stats = statistics(model, lambda m: F.linear(F.silu(F.linear(x(), m[0])), m[1]).square().mean())
    assert {record.codec for record in stats.records} == {"sfpr"}


def test_layers_that_are_called_one_by_one():
    def step(model):
        y = x()
        for layer in model:
            y = layer(y)
        return y.mean()

    model = nn.Sequential(nn.Linear(16, 32), nn.SiLU(), Scaled(), nn.Linear(32, 16))
    assert {record.codec for record in statistics(model, step).records} == {"sfpr"}


def test_what_stands_between_two_calls_counts_as_a_loss():
    stats = statistics(network(), lambda m: by_hand(m(x())) + by_hand(m(x())))
    assert codecs(stats, "sqrt") == codecs(stats, "pow") == {"loss"}
    assert codecs(stats, "linear") == {"sfpr"}


def test_modules_without_parameters_behind_the_model():
    scaled = Scaled()
    assert codecs(statistics(network(), lambda m: scaled(m(x())).mean()), "mul") == {"loss"}
    assert codecs(statistics(network(), lambda m: m(scaled(x())).mean()), "mul") == {"sfpr"}


def test_networks_behind_the_model():
    teacher = network().requires_grad_(False)
    stats = statistics(nn.Linear(16, 16), lambda m: by_hand(teacher(m(x()))))
    assert codecs(stats, "silu") == {"sfpr"}
    assert codecs(stats, "sqrt") == {"loss"}


@pytest.mark.parametrize(("kind", "codec"), [(WithNetwork, "sfpr"), (WithNetworkLoss, "loss")])
def test_networks_within_a_module_that_is_called_a_loss(kind, codec):
    within = kind()
    stats = statistics(nn.Linear(16, 16), lambda m: within(m(x())).mean())
    assert codecs(stats, "silu") == {"sfpr"}
    assert codecs(stats, "mul") == {codec}


class Trained(nn.Module):
    """A model that has its loss in it."""

    def __init__(self, name, part):
        super().__init__()
        self.network = network()
        self.add_module(name, part)
        self._name = name

    def forward(self, x):
        return self.get_submodule(self._name)(self.network(x)).mean()


@pytest.mark.parametrize(
    ("name", "part", "codec"),
    [
        ("part", Scaled(), "sfpr"),
        ("part", ScaledCriterion(), "loss"),
        ("criterion", Scaled(), "loss"),
        ("loss_fn", nn.Sequential(nn.Identity(), Scaled()), "loss"),
        ("lossless", Scaled(), "sfpr"),
    ],
)
def test_a_loss_within_the_model_is_known_by_its_name(name, part, codec):
    assert codecs(statistics(Trained(name, part), lambda m: m(x())), "mul") == {codec}


def test_a_module_that_is_made_in_forward_is_no_loss():
    class Made(nn.Linear):
        def forward(self, x):
            return Scaled()(super().forward(x))

    assert codecs(statistics(Made(16, 16), lambda m: m(x()).mean()), "mul") == {"sfpr"}
