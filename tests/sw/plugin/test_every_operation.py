"""No operation of torch gives NaN, infinity or zero where the exact gradient is finite and not zero: its test database."""

import re
from pathlib import Path

import pytest
import torch
from actcodec.saved import needs
from actcodec.saved.operations import plain
from saved_tensors import name_of, operations, outcomes
from torch.nn import functional as F

PAGE = (Path(__file__).parents[3] / "docs" / "methods" / "saved_tensors.md").read_text()
#: Policies, options, and the largest relative error of an operation's gradient; None for few bits, where it may be any.
#: Scales that saturate, and transforms of values that are no pictures, may leave as little as no gradient would be: 1.
POLICIES = {
    "sfpr": ({"S": 1.0}, 0.05),
    "actnn": ({"bits": 8}, 0.05),
    "autoquant": ({}, 0.05),
    "autocusz": ({}, 0.05),
    "autojpegz": ({}, 1.0),
    "sfpr+zvc": ({}, 1.0),
    "jpeg-act": ({}, 1.0),
    "jpeg-base": ({}, 1.0),
    "actnn-L2": ({}, None),
    "actnn-L3": ({}, None),
    "gist": ({}, None),
    "division": ({}, None),
    "division-float": ({}, None),
    "blpa": ({}, None),
    "blpa-coded": ({}, None),
    "gridquantz": ({}, None),
    "auto": ({}, None),
}
#: Operations whose relative error may be this many times as large: the gradient of a softmax that is nearly 0 or 1 is small,
#: and that of singular vectors divides by differences of singular values.
AMPLIFYING = {"nn.functional.scaled_dot_product_attention": 8, "pca_lowrank": 8, "svd_lowrank": 8}


def assert_all_right(which, samples):
    """Finite and not zero where the exact gradients are, and close to them."""
    options, bound = POLICIES[which]
    compressed, bits = set(), set()
    for entry in operations():
        name = name_of(entry)
        for outcome in outcomes(entry, which, options, samples):
            assert not outcome.fault, outcome
            if bound is not None:
                assert outcome.error < bound * AMPLIFYING.get(name, 1), outcome
            if outcome.kept - {"exact", "bits", "shape", "brc"}:
                compressed.add(name)
            if "bits" in outcome.kept:
                bits.add(name)
    assert len(compressed) > 50  # or little was tried
    assert {"amax", "nn.functional.hardtanh", "nn.functional.relu6", "nn.functional.leaky_relu", "abs"} <= bits


def test_the_first_samples_of_every_operation():
    assert_all_right("sfpr", 2)


@pytest.mark.campaign
@pytest.mark.parametrize("which", POLICIES)
def test_every_sample_of_every_operation(which):
    assert_all_right(which, None)


def test_functions_of_the_table_are_torchs():
    places = (torch, torch.Tensor, F, torch._C._nn, torch._C._linalg, torch._C._special, torch._VF)
    known = {plain(name) for place in places for name in dir(place)} | {
        plain(name) for name in ("linalg_multi_dot", "__rmul__")
    }
    named = needs.SMOOTH | needs.SIZES | set(needs.BY_ARGUMENTS) | set(needs.REGIONS) | set(needs.EXTREMES)
    assert named - known == set()
    tables = (needs.SMOOTH, needs.SIZES, set(needs.BY_ARGUMENTS), set(needs.EXTREMES))
    assert sum(map(len, tables)) == len(frozenset().union(*tables))
    assert needs.SMOOTH & set(needs.REGIONS) == needs.SIGNS


@pytest.mark.parametrize(
    ("operation", "kept"),
    [
        ("amax", "bits, exactly"),
        ("sqrt", "exactly"),
        ("nn.functional.relu6", "bits"),
        ("nn.functional.gelu", "values"),
        ("nn.functional.conv2d", "values"),
        ("scatter_reduce.amax", "exactly"),
        ("nn.functional.cosine_similarity", "exactly"),
    ],
)
def test_the_page_says_what_is_kept(operation, kept):
    (found,) = re.findall(rf"^\| `{re.escape(operation)}` \| .* \| (.*) \|$", PAGE, re.MULTILINE)
    assert found == kept
