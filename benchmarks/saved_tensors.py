"""Measure the bytes that the plug-in keeps of tensors saved by torch's operations, and the errors of their gradients.

    python benchmarks/saved_tensors.py

Writes docs/methods/saved_tensors.csv, and some of its rows between the marks of docs/methods/saved_tensors.md.

Runs every differentiable operation of torch's own test database in float32 on the CPU, as function, method and in place, with
the database's sample inputs, without hooks and under policy ``sfpr`` (8 bits). Takes about two minutes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch
from actcodec.study.torch_operations import Outcome, name_of, operations, outcomes
from cdu_tools.files import write_whole
from cdu_tools.marks import Marks
from cdu_tools.report import Table

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
