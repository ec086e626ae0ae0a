"""Policies for comparison: accelerators of JPEG-ACT's table "which activation gets what", and plain storage.

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

from actcodec.policies.policy import CODED_DTYPES, CodecFactory, CodecSpec, Policy, Rule
from actcodec.policies.tables.modes import exact_policy
from actcodec.policies.tables.rules import LOSS_RULES, SPARSE, first_rules


def gist_policy(codec_factory: CodecFactory | None = None, **options: Any) -> Policy:
    """Return GIST's policy. Options as for codec ``gist`` (dpr, nonfinite)."""
    rules = (
        *first_rules(options),
        Rule(CodecSpec("gist-csr", options), producer=SPARSE, dtypes=CODED_DTYPES, min_rank=3),
        Rule(CodecSpec("gist", options), dtypes=CODED_DTYPES),
    )
    return Policy(rules, codec_factory=codec_factory)


def cdma_policy(codec_factory: CodecFactory | None = None, **options: Any) -> Policy:
    """Return cDMA+'s policy: words that are zero are left out of sparse tensors; no gradient changes. It takes no options."""
    _check_none("cdma", options)
    rules = (*LOSS_RULES, Rule("cdma", producer=SPARSE, dtypes=CODED_DTYPES, min_rank=3))
    return Policy(rules, codec_factory=codec_factory)


def vdnn_policy(codec_factory: CodecFactory | None = None, **options: Any) -> Policy:
    """Return vDNN's policy: every activation moves to host memory; no gradient changes. It takes no options.

    Without a CUDA device the policy warns and keeps every tensor where it is.
    """
    _check_none("vdnn", options)
    if not torch.cuda.is_available():
        warnings.warn("vdnn moves tensors to host memory, where those on the CPU already are: nothing moves", stacklevel=2)
        return exact_policy(codec_factory)
    rules = (*LOSS_RULES, Rule("vdnn", dtypes=CODED_DTYPES))
    return Policy(rules, codec_factory=codec_factory, companions=False)


def bf16_policy(codec_factory: CodecFactory | None = None, **options: Any) -> Policy:
    """Return a policy of bfloat16 for float32 activations, 16-bit ones as they are, and BRC for ReLU. It takes no options."""
    _check_none("bf16", options)
    return Policy((*first_rules({}), Rule("bf16", dtypes=(torch.float32,))), codec_factory=codec_factory)


def int8_rows_policy(codec_factory: CodecFactory | None = None, **options: Any) -> Policy:
    """Return a policy of 8 bits with a scale per row, and BRC for ReLU. Options as for codec ``int8-rows`` (backend)."""
    rules = (*first_rules(options), Rule(CodecSpec("int8-rows", options), dtypes=CODED_DTYPES))
    return Policy(rules, codec_factory=codec_factory)


def _check_none(name: str, options: dict[str, Any]) -> None:
    if options:
        raise UserError(f"codec {name!r} has no option {next(iter(options))!r}: it has none")
