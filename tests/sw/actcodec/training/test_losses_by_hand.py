"""Losses written by hand are exact: a step has the gradient of the same step with its loss outside of the context."""

import warnings

import actcodec
import pytest
import torch
from actcodec.policies.recommended import families, has_kernels, measured, recommended
from actcodec.saved.second_order import SecondOrderWarning
from losses_by_hand import LOSSES

#: Policies recommended for kinds of networks, with and without kernels, and policies that users begin with.
RECOMMENDED = [recommended(family, among).text for family in families() for among in (has_kernels, lambda name: True)]
BEGUN_WITH = ["sfpr", "jpeg-act", "jpeg-gmc", "transformer", "transformer-nvfp4", "blpa-coded bits=6"]
MEASURED = {one.text: one.policy for one in measured() if one.policy.name != "actnn-L5" or torch.cuda.is_available()}
POLICIES = sorted({*RECOMMENDED, *BEGUN_WITH})
NEAR = 0.01


def gradient_of(which, spec, where):
    """The gradient of a step, in one vector: without compression, or with the networks or all of it in the context."""
    torch.manual_seed(0)
    model = which.model()
    torch.manual_seed(1)
    if where == "exact":
        loss = which.loss(which.forward(model))
    else:
        compression = actcodec.compress_activations(model, spec.name, min_bytes=0, **spec.options)
        with compression:
            outputs = which.forward(model)
            if where == "inside":
                loss = which.loss(outputs)
        if where == "outside":
            loss = which.loss(outputs)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SecondOrderWarning)
        loss.backward()
    return torch.cat([p.grad.flatten() for p in model.parameters()])


def cosine(x, y):
    return float(torch.cosine_similarity(x.double(), y.double(), 0))


def assert_near(name, policy):
    which, spec = LOSSES[name], MEASURED[policy]
    exact, outside, inside = (gradient_of(which, spec, where) for where in ("exact", "outside", "inside"))
    assert cosine(inside, exact) > cosine(outside, exact) - NEAR


@pytest.mark.filterwarnings("ignore:a gradient is computed with create_graph")
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("name", LOSSES)
def test_a_loss_inside_is_that_outside(name, policy):
    assert_near(name, policy)


@pytest.mark.campaign
@pytest.mark.filterwarnings("ignore")  # a policy may warn, for example that it cannot reach its ratio
@pytest.mark.parametrize("policy", sorted(MEASURED.keys() - {*POLICIES}))
@pytest.mark.parametrize("name", LOSSES)
def test_under_every_policy(name, policy):
    assert_near(name, policy)
