"""No operation of torch gives NaN, infinity or zero where the exact gradient is finite and not zero: its test database."""

from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from types import FunctionType

import pytest
import torch
from actcodec.saved import gradient_needs
from actcodec.saved.operations import OperationTracker, plain
from actcodec.study.torch_operations import name_of, operations, outcomes
from actcodec.training import compress_activations
from torch.nn import functional as F

#: Policies, options, and the largest relative error of an operation's gradient; None for few bits, where it may be any.
#: Scales that saturate, and transforms of values that are no pictures, may leave as little as no gradient would be: about 1.
POLICIES = {
    "sfpr": ({"S": 1.0}, 0.05),
    "actnn": ({"bits": 8}, 0.05),
    "autoquant": ({}, 0.05),
    "autoquantz": ({}, 0.05),
    "autocusz": ({}, 0.05),
    "autojpegz": ({}, 1.0),
    "sfpr+zvc": ({}, 1.0),
    "jpeg-act": ({}, 1.0),
    "jpeg-gmc": ({}, 1.1),
    "jpeg-base": ({}, 1.0),
    "actnn-L2": ({}, None),
    "actnn-L3": ({}, None),
    "gist": ({}, None),
    "division": ({}, None),
    "division-channel": ({}, None),
    "division-float": ({}, None),
    "blpa": ({}, None),
    "blpa-coded": ({}, None),
    "transformer": ({"bits": 8}, None),
    "transformer-nvfp4": ({}, None),
    "gridquantz": ({}, None),
    "auto": ({}, None),
}
#: Operations whose relative error may be this many times as large. Attention's values are uniform within 9 of zero, so that
#: logits have the deviation 9^2 / 3 = 27. An error of e in queries and keys, of their root mean square, changes logits by
#: 27 sqrt(2) e and probabilities by as large a part of themselves; with the e below 0.01 of 8 bits the gradient is off by
#: no more than 0.01 (1 + 27 sqrt(2)) = 0.39, which is 8 times 0.05.
AMPLIFYING = {"nn.functional.scaled_dot_product_attention": 8}


#: Parts of all operations, which may run side by side.
PARTS = 4
#: Some operations whose inputs stay as bits.
AS_BITS = {"amax", "nn.functional.hardtanh", "nn.functional.relu6", "nn.functional.leaky_relu", "abs"}


def assert_all_right(which, samples, entries):
    """In a thread: the database looks at the whole stack for each sample, below a test for two thirds of the time."""
    with ThreadPoolExecutor(1) as pool:
        pool.submit(_assert_all_right, which, samples, entries).result()


def _assert_all_right(which, samples, entries):
    """Finite and not zero where the exact gradients are, and close to them."""
    options, bound = POLICIES[which]
    compressed, bits = set(), set()
    for entry in entries:
        name = name_of(entry)
        for outcome in outcomes(entry, which, options, samples):
            assert not outcome.fault, outcome
            if bound is not None:
                assert outcome.error < bound * AMPLIFYING.get(name, 1), outcome
            if outcome.kept - {"exact", "bits", "shape", "brc"}:
                compressed.add(name)
            if "bits" in outcome.kept:
                bits.add(name)
    assert len(compressed) > 50 / PARTS  # or little was tried
    assert AS_BITS & set(map(name_of, entries)) <= bits


@pytest.mark.parametrize("part", range(PARTS))
def test_the_first_sample_of_every_operation(part):
    assert_all_right("sfpr", 1, list(operations())[part::PARTS])


def test_operations_whose_inputs_stay_as_bits_are_among_all():
    assert set(map(name_of, operations())) >= AS_BITS


@pytest.mark.campaign
@pytest.mark.parametrize("which", POLICIES)
def test_every_sample_of_every_operation(which):
    assert_all_right(which, None, list(operations()))


def test_functions_of_the_table_are_torchs():
    places = (torch, torch.Tensor, F, torch._C._nn, torch._C._linalg, torch._C._special, torch._VF)
    known = {plain(name) for place in places for name in dir(place)} | {
        plain(name) for name in ("linalg_multi_dot", "__rmul__")
    }
    named = (
        gradient_needs.SMOOTH
        | gradient_needs.SIZES
        | set(gradient_needs.BY_ARGUMENTS)
        | set(gradient_needs.REGIONS)
        | set(gradient_needs.EXTREMES)
    )
    assert named - known == set()
    tables = (gradient_needs.SMOOTH, gradient_needs.SIZES, set(gradient_needs.BY_ARGUMENTS), set(gradient_needs.EXTREMES))
    assert sum(map(len, tables)) == len(frozenset().union(*tables))
    assert gradient_needs.SMOOTH & set(gradient_needs.REGIONS) == gradient_needs.SIGNS


def names_of_calls(entry):
    """Under which names the calls of an entry's function are known."""
    seen = set()
    samples = list(islice(entry.sample_inputs("cpu", torch.float32, requires_grad=True), 2))
    with OperationTracker(lambda operation, _: seen.add(plain(operation.function))):
        for sample in samples:
            entry.op(sample.input, *sample.args, **sample.kwargs)
    return seen


@pytest.mark.filterwarnings("ignore")
def test_functions_written_in_python_count_as_themselves():
    functions = {entry.name: getattr(torch, entry.name, None) for entry in operations()} | {
        f"nn.functional.{name}": function for name, function in vars(F).items()
    }
    written = {name for name, function in functions.items() if isinstance(function, FunctionType)}
    chosen = [entry for entry in operations() if entry.name in written and "max_pool" not in entry.name]
    with ThreadPoolExecutor(1) as pool:  # as in assert_all_right
        names = dict(zip((entry.name for entry in chosen), pool.map(names_of_calls, chosen), strict=True))
    others = {name for name, seen in names.items() if plain(name.split(".")[-1]) not in seen}
    assert others == {"nn.functional.upsample_bilinear", "nn.functional.upsample_nearest"}  # their calls count as interpolate
    assert {"svd_lowrank", "pca_lowrank", "nn.functional.relu6"} <= set(names)


@pytest.mark.parametrize("name", ["svd_lowrank", "pca_lowrank", "lobpcg"])
def test_what_decompositions_save_is_exact(name):
    x = torch.randn(48, 48, requires_grad=True)
    matrix = x @ x.mT
    with compress_activations(torch.nn.Identity(), "sfpr") as statistics:
        getattr(torch, name)(matrix * 1, 2)
    assert {record.codec for record in statistics.records} == {"exact"}
