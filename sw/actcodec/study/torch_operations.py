"""Run every operation of torch's own test database, and compare gradients with compressed tensors to the exact ones.

The database has inputs for every differentiable operation, as function, method and in place; here in float32 on the CPU.
"""

from __future__ import annotations

import sys
import types
import unittest
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from itertools import islice
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.graph import Node
from torch.utils._pytree import tree_leaves, tree_map

from actcodec.training import Statistics, compress_activations

_EMPTY = nn.Module()
#: Directions are of size 1; a gradient below is what float32 leaves of a sum that is zero.
_NOISE = 1e-5
#: Errors of torch for samples that it cannot differentiate itself.
_TORCHS_OWN = (RuntimeError, TypeError, ValueError, IndexError)

#: Gives the tensors to differentiate by, and the results.
Call = Callable[[], tuple[list[Tensor], list[Tensor]]]


def operations() -> list[Any]:
    """List the entries of torch's database of operations that are differentiable in float32 on the CPU."""
    if "expecttest" not in sys.modules:
        # Torch's test utilities derive a class of theirs from one of this package, which nothing here uses.
        stand_in = types.ModuleType("expecttest")
        vars(stand_in)["TestCase"] = unittest.TestCase
        sys.modules["expecttest"] = stand_in
    from torch.testing._internal.common_methods_invocations import op_db

    return [entry for entry in op_db if entry.supports_autograd and torch.float32 in entry.dtypes]


def name_of(entry: Any) -> str:
    """Join an entry's name and variant, such as ``norm.inf``."""
    return f"{entry.name}.{entry.variant_test_name}" if entry.variant_test_name else str(entry.name)


@dataclass(frozen=True)
class Outcome:
    """The effect of compression on one call."""

    call: str
    fault: str  #: ``not finite`` or ``zero`` where the exact gradient is neither, else empty
    error: float  #: ||g - g'|| / ||g|| over all inputs
    kept: frozenset[str]  #: codecs, ``exact``, ``bits``, ``shape``: of the activations that it saved
    nodes: frozenset[str]  #: graph nodes that hold floating-point tensors


def outcomes(entry: Any, policy: str, options: dict[str, Any], samples: int | None = None) -> Iterator[Outcome]:
    """Compare the gradients of each call of an operation under a policy with those without.

    Calls that torch itself cannot differentiate are left out.

    Parameters
    ----------
    entry
        One of :func:`operations`.
    policy, options
        A policy's name and its options.
    samples
        Number of inputs of rank 2 or more to call it with; None for all inputs.
    """
    for name, call in _calls(entry, samples):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                wanted, nodes, _ = _gradients(call, nullcontext(Statistics()))
            except _TORCHS_OWN:
                continue
            got, _, statistics = _gradients(call, compress_activations(_EMPTY, policy, min_bytes=0, **options))
        kept = frozenset(record.codec for record in statistics.records)
        yield Outcome(name, _fault(wanted, got), _error(wanted, got), kept, nodes)


def _calls(entry: Any, samples: int | None) -> Iterator[tuple[str, Call]]:
    torch.manual_seed(0)
    kinds = {"function": entry.op, "method": entry.method_variant, "in place": entry.inplace_variant}
    numbered = enumerate(entry.sample_inputs("cpu", torch.float32, requires_grad=True))
    large = ((number, sample) for number, sample in numbered if samples is None or _rank(_enlarged(entry, sample)) > 1)
    for number, sample in islice(large, samples):
        for kind, function in kinds.items():
            if function is not None and (kind != "in place" or entry.supports_inplace_autograd):
                yield f"{name_of(entry)} {number} {kind}", _call(function, _enlarged(entry, sample))


def _enlarged(entry: Any, sample: Any) -> Any:
    """A sample of a function of single values, of which the database has 20, as a batch of maps that codecs take."""
    from torch.testing._internal.opinfo.core import SampleInput, UnaryUfuncInfo

    x = sample.input
    if not isinstance(entry, UnaryUfuncInfo) or x.ndim != 1:
        return sample
    maps = torch.stack([x.detach().roll(place) for place in range(8)]).view(2, 2, 2, len(x)).requires_grad_(x.requires_grad)
    return SampleInput(maps, args=sample.args, kwargs=sample.kwargs)  # type: ignore[no-untyped-call]


def _rank(sample: Any) -> int:
    given = tree_leaves((sample.input, sample.args, sample.kwargs))
    return max((x.ndim for x in given if _is_differentiable(x) and x.numel()), default=0)


def _call(function: Callable[..., Any], sample: Any) -> Call:
    def call() -> tuple[list[Tensor], list[Tensor]]:
        given = (sample.input, sample.args, sample.kwargs)
        leaves = tree_map(lambda x: x.detach().clone().requires_grad_(x.requires_grad) if isinstance(x, Tensor) else x, given)
        torch.manual_seed(1)
        # Not the leaves themselves, which are no activations and cannot be changed in place.
        first, args, kwargs = tree_map(lambda x: x * 1 if _is_differentiable(x) else x, leaves)
        results = sample.output_process_fn_grad(function(first, *args, **kwargs))
        return [x for x in tree_leaves(leaves) if _is_differentiable(x)], [
            y for y in tree_leaves(results) if _is_differentiable(y)
        ]

    return call


def _is_differentiable(x: Any) -> bool:
    return isinstance(x, Tensor) and x.requires_grad


def _gradients(call: Call, context: AbstractContextManager[Statistics]) -> tuple[list[Tensor], frozenset[str], Statistics]:
    with context as statistics:
        inputs, results = call()
    nodes = _saving_nodes(results)
    random = torch.Generator().manual_seed(2)
    directions = [torch.randn(y.shape, generator=random).to(y.dtype) for y in results]
    found = torch.autograd.grad(results, inputs, directions, allow_unused=True) if results and inputs else ()
    return [gradient.to_dense() for gradient in found if gradient is not None], nodes, statistics


def _saving_nodes(results: Sequence[Tensor]) -> frozenset[str]:
    """Names of the nodes of a graph that hold floating-point tensors."""
    found, seen = set(), set()
    waiting: list[Node | None] = [y.grad_fn for y in results]
    while waiting:
        node = waiting.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        waiting += [before for before, _ in node.next_functions]
        saved = tree_leaves([getattr(node, name) for name in dir(node) if name.startswith("_saved_")])
        if any(isinstance(x, Tensor) and x.is_floating_point() for x in saved):
            found.add(node.name())
    return frozenset(found)


def _fault(wanted: list[Tensor], got: list[Tensor]) -> str:
    for want, have in zip(wanted, got, strict=True):
        if bool((want.isfinite() & ~have.isfinite()).any()):
            return "not finite"
    for want, have in zip(_significant(wanted, wanted), _significant(wanted, got), strict=True):
        if bool(want.any()) and not bool(have.any()):
            return "zero"
    return ""


def _error(wanted: list[Tensor], got: list[Tensor]) -> float:
    pairs = list(zip(_significant(wanted, wanted), _significant(wanted, got), strict=True))
    norm = sum(float(want.abs().double().square().sum()) for want, _ in pairs)
    difference = sum(float((want - have).abs().double().square().sum()) for want, have in pairs)
    return float((difference / norm) ** 0.5) if norm else 0.0


def _significant(wanted: list[Tensor], gradients: list[Tensor]) -> list[Tensor]:
    """The finite values of those gradients that are more than what is left of sums that cancel."""
    pairs = zip(wanted, gradients, strict=True)
    return [got[want.isfinite()] for want, got in pairs if bool((want[want.isfinite()].abs() > _NOISE).any())]
