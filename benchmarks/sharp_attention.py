"""Measure gradients under sharp attention: queries and keys of a trained vision transformer made larger, policy by policy.

    python benchmarks/sharp_attention.py

The network is that of benchmarks/token_codecs.py. Weights and biases of its queries and keys are multiplied by 1, 2 and 3, and
so logits by 1, 4 and 9, as they grow in a longer training. Columns: cosine of the gradient with the exact one, and ratio of
everything. ``not sharpened`` is policy ``transformer`` without the bits that it gives to queries and keys as logits grow.
Writes the table between the marks of docs/methods/transformer.md.
"""

from __future__ import annotations

import math
from pathlib import Path
from unittest.mock import patch

import torch
from actcodec.policies.catalog import policy
from actcodec.policies.tables import transformer
from actcodec.study.gradient_similarity import cosine
from cdu_tools.marks import Marks
from cdu_tools.report import Table
from marked_table import measure
from token_codecs import trained

PAGE, MARKS = Path("docs", "methods", "transformer.md"), Marks("sharp-attention")
FACTORS = (1, 2, 3)
POLICIES = {
    "nvfp4": ("nvfp4", {}),
    "blpa-coded bits=6": ("blpa-coded", {"bits": 6}),
    "not sharpened": ("transformer", {}),
    "transformer": ("transformer", {}),
    "transformer bits=5": ("transformer", {"bits": 5}),
    "transformer-nvfp4": ("transformer-nvfp4", {}),
}


def table() -> Table:
    """A row for each policy."""
    network, passes = trained("vit")
    lines: dict[str, list[str]] = {label: [label] for label in POLICIES}
    before = {name: one.detach().clone() for name, one in network.named_parameters() if "in_proj" in name}
    for factor in FACTORS:
        with torch.no_grad():
            for name, one in network.named_parameters():
                if name in before:
                    heads = len(one) // 3  # queries, keys, values
                    one[: 2 * heads] = factor * before[name][: 2 * heads]
        exact = passes.gradient()
        for label, (name, options) in POLICIES.items():
            sharp = math.inf if label == "not sharpened" else transformer.SHARP
            with patch.object(transformer, "SHARP", sharp):
                gradient, kept = passes.outcome(policy(name, **options))  # type: ignore[arg-type]
            assert kept is not None, "the step was compressed"
            lines[label] += [f"{cosine(exact, gradient):.4f}", f"{kept.ratio_of_everything:.2f}"]
    header = ("policy", *(part for factor in FACTORS for part in (f"logits x {factor**2}", "ratio")))
    return Table(header, list(lines.values()))


if __name__ == "__main__":
    measure(__doc__.splitlines()[0], table, PAGE, MARKS)
