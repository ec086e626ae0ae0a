"""DIVISION's floating-point form in training, for every activation, including those of linear layers."""

from __future__ import annotations

from typing import Any

from actcodec import codecs
from actcodec.policies.policy import CODED_DTYPES, CodecFactory, CodecSpec, Policy, Rule
from actcodec.policies.tables.rules import first_rules


def division_float_policy(codec_factory: CodecFactory | None = None, **options: Any) -> Policy:
    """Return a policy with codec ``division-float`` for activations of rank 2 to 4 and ``actnn-float`` for others.

    ReLU keeps its signs beside the values that the next layer saves, as the paper counts them: with 2 bits a small positive
    value is often decoded as zero or below, which would block the gradient.

    Options as for codec ``division-float``: bits, block, half, parts (the ablations), rounding, seed, backend.
    """
    allowed = codecs.codec_options("actnn-float")
    others = {name: value for name, value in options.items() if name in allowed}
    rules = (
        *first_rules(options),
        Rule(CodecSpec("division-float", options), dtypes=CODED_DTYPES),
        Rule(CodecSpec("actnn-float", others), dtypes=CODED_DTYPES),
    )
    return Policy(rules, codec_factory=codec_factory, keep_signs=True)
