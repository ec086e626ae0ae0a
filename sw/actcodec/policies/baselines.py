"""Policies that ours are compared with: accelerators of JPEG-ACT's table "which activation gets what", and plain storage.

======================================  ========  =====  ====
activation                              gist      cdma   vdnn
======================================  ========  =====  ====
dense: conv, sum, the network's input   gist      exact  vdnn
ReLU into anything that needs no value  brc       cdma   vdnn
ReLU, pool, dropout into other layers   gist-csr  cdma   vdnn
shapes of rank 2                        gist      exact  vdnn
======================================  ========  =====  ====

Storage in fewer bits, ``bf16`` and ``int8-rows``, is one codec for every activation, and signs for ReLU. Losses and softmax
results are exact, as everywhere.
"""

from __future__ import annotations

import warnings
from typing import Any

import torch
from cdu_tools.errors import UserError

from actcodec.policies.policy import (
    CODED_DTYPES,
    LOSS_RULES,
    SPARSE,
    CodecFactory,
    CodecSpec,
    Policy,
    Rule,
    exact_policy,
    first_rules,
)


def gist_policy(codec_factory: CodecFactory | None = None, **options: Any) -> Policy:
    """GIST. Options as for codec ``gist`` (dpr, nonfinite)."""
    rules = (
        *first_rules(options),
        Rule(CodecSpec("gist-csr", options), producer=SPARSE, dtypes=CODED_DTYPES, min_rank=3),
        Rule(CodecSpec("gist", options), dtypes=CODED_DTYPES),
    )
    return Policy(rules, codec_factory=codec_factory)


def cdma_policy(codec_factory: CodecFactory | None = None, **options: Any) -> Policy:
    """cDMA+: words that are zero are left out of sparse tensors; no gradient changes. Takes no options."""
    _check_none("cdma", options)
    rules = (*LOSS_RULES, Rule("cdma", producer=SPARSE, dtypes=CODED_DTYPES, min_rank=3))
    return Policy(rules, codec_factory=codec_factory)


def vdnn_policy(codec_factory: CodecFactory | None = None, **options: Any) -> Policy:
    """vDNN: every activation waits in host memory; no gradient changes. Takes no options.

    Without a CUDA device it says so in a warning, and everything stays where it is.
    """
    _check_none("vdnn", options)
    if not torch.cuda.is_available():
        warnings.warn("vdnn moves tensors to host memory, where those on the CPU already are: nothing moves", stacklevel=2)
        return exact_policy(codec_factory)
    rules = (*LOSS_RULES, Rule("vdnn", dtypes=CODED_DTYPES))
    return Policy(rules, codec_factory=codec_factory, companions=False)


def bf16_policy(codec_factory: CodecFactory | None = None, **options: Any) -> Policy:
    """Every activation in float32 waits in bfloat16, those in 16 bits as they are; BRC for ReLU. Takes no options."""
    _check_none("bf16", options)
    return Policy((*first_rules({}), Rule("bf16", dtypes=(torch.float32,))), codec_factory=codec_factory)


def int8_rows_policy(codec_factory: CodecFactory | None = None, **options: Any) -> Policy:
    """Every activation in 8 bits with a scale per row, BRC for ReLU. Takes no options."""
    _check_none("int8-rows", options)
    return Policy((*first_rules({}), Rule("int8-rows", dtypes=CODED_DTYPES)), codec_factory=codec_factory)


def _check_none(name: str, options: dict[str, Any]) -> None:
    if options:
        raise UserError(f"codec {name!r} has no option {next(iter(options))!r}: it has none")
