"""The warning for policies with noisy gradients: two bits for the input of a normalisation."""

import warnings

import actcodec
import pytest
import torch
from actcodec.policies.catalog import policy
from actcodec.policies.few_bits import FewBitsWarning
from actcodec.policies.policy import CodecSpec, Policy, Rule
from torch import nn

X = torch.randn(4, 3, 16, 16, generator=torch.Generator().manual_seed(0))


def network(norm):
    return nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), norm, nn.GELU(), nn.Conv2d(8, 8, 3), nn.GELU())


def warned(model, which, **options):
    """Return the warnings of one context."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with actcodec.compress_activations(model, which, **options):
            loss = model(X).square().mean()
        loss.backward()
    return [str(one.message) for one in caught if one.category is FewBitsWarning]


@pytest.mark.parametrize(
    ("which", "options", "bits"),
    [
        ("actnn", {}, 2),
        ("actnn-L2", {"bits": 1}, 1),
        ("actnn-L3", {}, 2),
        ("division", {}, 2),
        ("division-channel", {}, 2),
        ("division-float", {}, 2),
    ],
)
def test_one_sentence_names_policy_module_and_remedy(which, options, bits):
    model = nn.Sequential(network(nn.BatchNorm2d(8)), nn.BatchNorm2d(8))
    (said,) = warned(model, which, **options)
    assert said.startswith(f"policy '{which}")
    assert f"keeps {bits} bits of what batchnorm of module '0.1' normalises" in said
    assert "4 bits or more" in said
    assert "docs/user/policies.md" in said


def test_bits_that_a_policy_divides_among_tensors():
    """At first all tensors have the mean; the warning follows from the bits of the second step for the normalisation."""
    model, chosen = network(nn.BatchNorm2d(8)), policy("actnn-L3", bits=1.5)
    (said,) = warned(model, chosen)
    assert "'actnn-L3 bits=1.5' keeps 1.5 bits" in said
    saying = warned(model, chosen)
    (given,) = (one.bits for one in chosen.layers if one.operation == "conv" and one.values == 8 * 16 * 16)
    assert saying == ([said.replace("keeps 1.5 bits", f"keeps {given:.3g} bits")] if given <= 2 else [])


@pytest.mark.parametrize(
    ("norm", "function"),
    [(nn.GroupNorm(2, 8), "groupnorm"), (nn.LayerNorm([8, 16, 16]), "layernorm"), (nn.BatchNorm2d(8), "batchnorm")],
)
def test_every_normalisation(norm, function):
    (said,) = warned(network(norm), "actnn")
    assert function in said


@pytest.mark.parametrize(
    ("which", "options"), [("actnn", {"bits": 4}), ("actnn-L2", {}), ("sfpr", {}), ("jpeg-gmc", {}), ("blpa", {}), ("none", {})]
)
def test_nothing_is_said_of_more_bits(which, options):
    assert warned(network(nn.BatchNorm2d(8)), which, **options) == []


def test_nothing_is_said_where_no_normalisation_is():
    assert warned(network(nn.Identity()), "actnn") == []


def test_a_rule_of_ones_own_that_gives_more_bits_is_the_remedy():
    few = Rule(CodecSpec("actnn", {"bits": 2}))
    enough = Rule(CodecSpec("actnn", {"bits": 4}), consumer=("norm",))
    (said,) = warned(network(nn.BatchNorm2d(8)), Policy((few,)))
    assert said.startswith("Policy keeps 2 bits")
    assert warned(network(nn.BatchNorm2d(8)), Policy((enough, few))) == []


def test_a_check_says_it_by_its_verdict():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        actcodec.check(model := network(nn.BatchNorm2d(8)), lambda: model(X).square().mean(), ["actnn"])
