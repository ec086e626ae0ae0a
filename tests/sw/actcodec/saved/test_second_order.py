"""Losses that contain a gradient: exact with ``double_backward``, and one warning without where their value is not."""

import warnings

import actcodec
import pytest
import torch
from actcodec.saved.second_order import SecondOrderWarning
from torch import nn

SILU = (nn.Linear(16, 64), nn.SiLU(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 1))


def force_field(net):
    """The forces between atoms, the gradient of an energy."""
    places = torch.randn(4, 10, 3, requires_grad=True)
    distances = ((places.unsqueeze(1) - places.unsqueeze(2)).pow(2).sum(-1) + torch.eye(10)).sqrt()
    energy = net(torch.exp(-((distances.unsqueeze(-1) - torch.linspace(0, 4, 16)) ** 2)).sum(2)).sum()
    (force,) = torch.autograd.grad(-energy, places, create_graph=True)
    return force.pow(2).mean()


def gradient_penalty(net):
    """The slope of a critic between real and false data."""
    at = torch.randn(32, 16, requires_grad=True)
    (slope,) = torch.autograd.grad(net(at).sum(), at, create_graph=True)
    return net(torch.randn(32, 16)).mean() + 10 * (slope.norm(dim=1) - 1).pow(2).mean()


def differential_equation(net):
    """The residual of u'' + u = 0, by a network that is informed of it."""
    at = torch.linspace(0, 3, 64).view(64, 1).requires_grad_()
    u = net(torch.cat([torch.sin(k * at) for k in range(1, 17)], 1))
    (first,) = torch.autograd.grad(u.sum(), at, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), at, create_graph=True)
    return (second + u).pow(2).mean()


def step(layers, loss_of, policy="none", **options):
    """Loss, gradient and statistics; both passes of the inner gradient are in the context."""
    torch.manual_seed(0)
    net = nn.Sequential(*layers)
    for parameter in net.parameters():
        nn.init.normal_(parameter, std=0.3)
        parameter.grad = None
    with actcodec.compress_activations(net, policy, min_bytes=0, **options) as stats:
        loss = loss_of(net)
    loss.backward()
    return loss.detach(), torch.cat([p.grad.flatten() for p in net.parameters() if p.grad is not None]), stats


every_loss = pytest.mark.parametrize("loss_of", [force_field, gradient_penalty, differential_equation])
every_policy = pytest.mark.parametrize("policy", ["sfpr", "jpeg-gmc", "transformer", "blpa-coded", "actnn-L2", "jpeg-act"])


@every_loss
@every_policy
def test_one_warning_says_the_remedy(loss_of, policy):
    with pytest.warns(SecondOrderWarning, match=r"double_backward=True.*outside of the context") as said:
        loss, _, _ = step(SILU, loss_of, policy)
    assert len([one for one in said if one.category is SecondOrderWarning]) == 1
    assert loss != step(SILU, loss_of)[0]


@every_loss
@every_policy
def test_the_value_is_exact_with_the_remedy(loss_of, policy):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        loss, gradient, stats = step(SILU, loss_of, policy, double_backward=True)
    exact, its_gradient, _ = step(SILU, loss_of)
    assert loss == exact
    assert torch.cosine_similarity(gradient, its_gradient, 0) > 0.99
    inputs = [record for record in stats.records if record.saved_by == ("linear",) and record.name]
    assert "exact" not in {record.codec for record in inputs}  # only gradients of weights read them


@every_policy
def test_a_critic_of_convolutions_needs_no_remedy(policy):
    """Inputs of convolutions are read by gradients of weights alone, and a LeakyReLU's regions are exact."""

    def loss_of(net):
        at = torch.randn(4, 2, 16, 16, requires_grad=True)
        (slope,) = torch.autograd.grad(net(at).sum(), at, create_graph=True)
        return (slope.flatten(1).norm(dim=1) - 1).pow(2).mean()

    layers = (nn.Conv2d(2, 8, 3), nn.LeakyReLU(0.2), nn.Conv2d(8, 8, 3), nn.LeakyReLU(0.2), nn.Conv2d(8, 1, 3))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        loss, _, stats = step(layers, loss_of, policy)
    assert loss == step(layers, loss_of)[0]
    assert {row["codec"] for row in stats.tensors if row["shape"][1:2] == [8]} & {"exact"} == set()


@pytest.mark.parametrize("policy", ["sfpr", "jpeg-gmc", "transformer", "transformer-nvfp4", "blpa-coded", "actnn-L2"])
def test_signs_of_relu_are_exact_with_the_remedy(policy):
    """Also behind layers that widen, whose results policies of transformers compute again."""
    layers = (nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1))
    assert step(layers, gradient_penalty, policy, double_backward=True)[0] == step(layers, gradient_penalty)[0]
    if policy == "sfpr":
        with pytest.warns(SecondOrderWarning):
            step(layers, gradient_penalty, policy, keep_signs=False)


def test_gradients_of_weights_warn_even_with_the_remedy():
    """A step within the step, as in meta-learning."""

    def loss_of(net):
        x = torch.randn(32, 16)
        slopes = torch.autograd.grad(net(x).square().mean(), tuple(net.parameters()), create_graph=True)
        inner = {name: p - 0.1 * g for (name, p), g in zip(net.named_parameters(), slopes, strict=True)}
        return torch.func.functional_call(net, inner, (x,)).square().mean()

    with pytest.warns(SecondOrderWarning, match="not those of weights: compute what is differentiated outside"):
        step(SILU, loss_of, "sfpr", double_backward=True)


def test_an_ordinary_step_and_a_look_at_the_graph_warn_of_nothing():
    net, x = nn.Sequential(*SILU), torch.randn(8, 16)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with actcodec.compress_activations(net, "sfpr", min_bytes=0):
            loss = net(x).square().mean()
        assert net[3](x).grad_fn is None
        loss.grad_fn.next_functions[0][0]._saved_self  # noqa: B018
        loss.backward()
