"""Measure the bytes that the plug-in keeps of tensors saved by torch's operations, and the errors of their gradients.

    python benchmarks/saved_tensors.py

Writes docs/methods/saved_tensors.csv, and some of its rows between the marks of docs/methods/saved_tensors.md.

Runs every differentiable operation of torch's own test database in float32 on the CPU, as function, method and in place, with
the database's sample inputs, without hooks and under policy ``sfpr`` (8 bits). Takes about two minutes.
"""

from __future__ import annotations

import re
import sys
import types
import unittest
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import actcodec
import torch
from actcodec.training import Statistics
from cdu_tools.files import write_whole
from cdu_tools.marks import Marks
from cdu_tools.report import Table
from torch import Tensor, nn
from torch.autograd.graph import Node
from torch.utils._pytree import tree_leaves, tree_map

PAGE = Path(__file__).parents[1] / "docs" / "methods" / "saved_tensors.md"
ROWS = PAGE.with_suffix(".csv")
MARKS = Marks("saved-tensors")
#: Operations that the page shows.
_SHOWN = (
    "matmul",
    "nn.functional.conv2d",
    "nn.functional.layer_norm",
    "nn.functional.gelu",
    "nn.functional.relu",
    "nn.functional.relu6",
    "nn.functional.avg_pool2d",
    "linalg.vector_norm",
    "div.no_rounding_mode",
    "softmax",
)
_POLICY: tuple[str, dict[str, Any]] = ("sfpr", {"S": 1.0})
_EMPTY = nn.Module()
#: Directions are of size 1; a gradient below is what float32 leaves of a sum that is zero.
_NOISE = 1e-5
#: Errors of torch for samples that it cannot differentiate itself.
_TORCHS_OWN = (RuntimeError, TypeError, ValueError, IndexError)

#: Gives the tensors to differentiate by, and the results.
Call = Callable[[], tuple[list[Tensor], list[Tensor]]]


def operations() -> list[Any]:
    """Every entry of torch's database of operations that is differentiable in float32 on the CPU."""
    if "expecttest" not in sys.modules:
        # Torch's test utilities derive a class of theirs from one of this package, which nothing here uses.
        stand_in = types.ModuleType("expecttest")
        vars(stand_in)["TestCase"] = unittest.TestCase
        sys.modules["expecttest"] = stand_in
    from torch.testing._internal.common_methods_invocations import op_db

    return [entry for entry in op_db if entry.supports_autograd and torch.float32 in entry.dtypes]


def name_of(entry: Any) -> str:
    """Name and variant, such as ``norm.inf``."""
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
    """One for each call of an operation that torch itself can differentiate; of some inputs of rank 2 or more, or of all."""
    for name, call in _calls(entry, samples):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                wanted, nodes, _ = _gradients(call, nullcontext(Statistics()))
            except _TORCHS_OWN:
                continue
            got, _, statistics = _gradients(call, actcodec.compress_activations(_EMPTY, policy, min_bytes=0, **options))
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


def row(name: str, found: Iterable[Outcome]) -> list[str] | None:
    """Return the row of one operation, or None if it saves no activation.

    ValueError if something is kept exactly without a known reason.
    """
    found = list(found)
    kept = frozenset().union(*(outcome.kept for outcome in found))
    if not kept:
        return None
    words = [word for codec, word in _WORDS.items() if codec in kept]
    nodes = sorted(frozenset().union(*(outcome.nodes for outcome in found)))
    why = reason(name) if "exact" in kept else ""
    return [name, ", ".join(nodes), ", ".join(words), why]


_HEADER = ("operation", "nodes of the graph with floating-point tensors", "kept", "why exactly")
_WORDS = {"sfpr": "values", "brc": "signs", "bits": "bits", "shape": "sizes", "exact": "exactly"}

#: Why tensors are kept exactly, and of which operations, by the first pattern that matches a name.
_REASONS = (
    ("loss", r".*loss.*|.*cross_entropy.*|.*kl_div|.*logits"),
    ("softmax: the whole gradient passes through it", r".*softm.*"),
    ("complex numbers", r"fft\..*|stft|complex|angle|sgn"),
    ("decomposition or solver", r"(linalg\.)?(cholesky.*|cond|det|eig.*|householder_product|inv.*|lstsq.*|lu.*|pinv.*|qr)"),
    ("decomposition or solver", r"(linalg\.)?(slogdet|solve.*|svd.*|tensor(inv|solve)|vander|matrix_power|norm\.nuc)"),
    ("decomposition or solver", r"logdet|matrix_exp|ormqr|pca_lowrank|pinverse|triangular_solve"),
    ("the norm, which divides", r"(linalg\.)?(vector_|matrix_)?norm.*|std(_mean)?(\..*)?"),
    ("the norm, which divides", r"nn\.functional\.normalize"),
    (
        "an angle or a distance is small where its points are large",
        r"cdist|dist|hypot|nn\.functional\.(pdist|pairwise_distance)",
    ),
    ("an angle or a distance is small where its points are large", r"nn\.functional\.cosine_similarity"),
    ("denominator", r"(true_)?div.*|__rdiv__|addcdiv|reciprocal|nn\.functional\.local_response_norm"),
    ("pole, or end of the domain", r"a(cos|cosh|sin|tan2|tanh)|tan|r?sqrt|pow|float_power|__rpow__|(masked\.)?(cum)?prod"),
    ("pole, or end of the domain", r"(special\.)?(log|log10|log2|log1p|logit|xlog.*|entr|erfinv|ndtri|polygamma.*)"),
    ("pole, or end of the domain", r"digamma|lgamma|mvlgamma.*"),
    ("an error acts as its exponential", r"(masked\.)?log(addexp2?|cumsumexp|sumexp)|cosh|sinh"),
    ("an error acts as its exponential", r"(special\.)?(i0e?|i1e?|erfcx|log_ndtr|ndtr)"),
    ("periodic: an error acts by its size, however large the value", r"cos|sin|sinc"),
    (
        "compares",
        r"f?(max|min).*|cum(max|min)|clamp.*|(masked\.)?a(min|max|minmax)|(nan)?(median|quantile)|fmod|remainder|__rmod__",
    ),
    ("compares", r"copysign|nextafter|(index|scatter|_segment)_reduce.*|renorm|nn\.functional\.rrelu"),
    ("the places that are read", r"nn\.functional\.grid_sample|grid_sampler_.*"),
    ("the weights of a sum, which are small", r"nn\.functional\.embedding_bag"),
    ("sparse", r"sparse\..*"),
    ("factors smaller than what they multiply", r"mul|__rmul__|lerp"),
    ("probabilities", r"nn\.functional\.(scaled_dot_product_attention|multi_head_attention_forward)"),
    ("several operations, no layer of a network", r"corrcoef|cov|(cumulative_)?(trapz|trapezoid)|masked\..*|nanmean|ldexp"),
    ("a backward pass itself", r".*_backward"),
    ("statistics", r"_?(native_)?batch_norm.*"),
)


def reason(name: str) -> str:
    """Return the reason why some tensors of an operation are kept exactly; ValueError for one without a known reason."""
    for why, pattern in _REASONS:
        if re.fullmatch(pattern, name):
            return why
    raise ValueError(f"{name} keeps tensors exactly: say why in _REASONS, or code them (sw/actcodec/saved/gradient_needs.py)")


def shown(rows: Table) -> str:
    """Return the rows that the page shows, as Markdown."""
    by_name = {one[0]: one for one in rows.rows}
    return Table(_HEADER, [[f"`{name}`", *by_name[name][1:]] for name in _SHOWN]).markdown()


def main() -> None:
    """Run all operations, and write the table and the page's rows of it."""
    torch.set_num_threads(1)
    found = (row(name_of(entry), outcomes(entry, *_POLICY, samples=6)) for entry in operations())
    rows = Table(_HEADER, [one for one in found if one is not None])
    write_whole(ROWS, rows.csv())
    MARKS.put(PAGE, f"\n\n{shown(rows)}\n\n")


if __name__ == "__main__":
    main()
