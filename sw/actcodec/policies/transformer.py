"""Policies for transformers: one copy of what several tensors follow from, as coarse as gradients bear it.

======================================================  ========================  =================
activation                                              transformer               transformer-nvfp4
======================================================  ========================  =================
what follows from what is kept (recomputation)          nothing                   nothing
ReLU into anything that needs no value                  brc                       brc
softmax of an attention                                 mxint8                    mxint8
logarithms of a softmax, which a cross-entropy reads    bf16                      bf16
what a layer norm reads, or a square of tokens          feature-coded, by token   nvfp4
result of an attention                                  feature-coded, 1 bit up   nvfp4
what a batch normalisation reads                        feature-coded, 2 bits up  nvfp4
... if it is a map                                      blpa-coded, 2 bits up     nvfp4
what a linear layer or attention makes or reads         feature-coded             nvfp4
other maps                                              blpa-coded                nvfp4
all else                                                feature-coded             nvfp4
======================================================  ========================  =================

What is recomputed says :mod:`actcodec.policies.recomputation`, why these codecs docs/methods/transformer.md.
"""

from __future__ import annotations

from typing import Any

import torch
from cdu_spec.mx import NVFP4

from actcodec import codecs
from actcodec.codecs.blpa.blpa_coded import MOST_BITS, BlpaCodedCodec
from actcodec.codecs.blpa.feature_coded import TOKEN, FeatureCodedCodec
from actcodec.policies.jpeg_gmc import NO_MAPS
from actcodec.policies.policy import (
    CODED_DTYPES,
    EXACT,
    CodecFactory,
    CodecSpec,
    Rule,
    check_options,
    first_rules,
    spec_with,
)
from actcodec.policies.recomputation import RecomputingPolicy

#: Of probabilities and of their logarithms. The gradient of a row of logits sums to zero; fewer bits spoil that, which is much
#: where what is summed is nearly the same in all columns (docs/methods/transformer.md).
PROBABILITIES, LOGARITHMS = "mxint8", "bf16"
#: What normalises tokens, and squares of root mean squares that are written out.
_TOKEN_NORMS, _SQUARES = ("layernorm", "rmsnorm"), ("pow", "square")
_BATCH_NORM = ("batchnorm",)
#: Bits more, by how much errors weigh (docs/methods/transformer.md).
_OF_ATTENTION, _OF_BATCH_NORM = 1, 2
_MAP_RANK, _TOKENS_RANK = 4, 3


def transformer_policy(codec_factory: CodecFactory | None = None, **options: Any) -> RecomputingPolicy:
    """The table's first column. Options as for codec ``feature-coded``: bits and backend; ``steps_of`` is that of all else."""
    bits = codecs.codec(FeatureCodedCodec.name, **options).bits  # type: ignore[attr-defined]

    def features(more: float = 0, **others: Any) -> CodecSpec:
        return CodecSpec(FeatureCodedCodec.name, options | {"bits": min(bits + more, MOST_BITS)} | others)

    def maps(more: float = 0) -> CodecSpec:
        return spec_with(BlpaCodedCodec.name, options | {"bits": min(bits + more, MOST_BITS)})

    return _policy(
        (
            Rule(maps(_OF_BATCH_NORM), consumer=_BATCH_NORM, dtypes=CODED_DTYPES, min_rank=_MAP_RANK),
            Rule(features(_OF_BATCH_NORM), consumer=_BATCH_NORM, dtypes=CODED_DTYPES),
            Rule(features(steps_of=TOKEN), consumer=_TOKEN_NORMS, dtypes=CODED_DTYPES),
            Rule(features(steps_of=TOKEN), consumer=_SQUARES, dtypes=CODED_DTYPES, min_rank=_TOKENS_RANK),
            Rule(features(_OF_ATTENTION), producer=("attention",), dtypes=CODED_DTYPES),
            Rule(features(), producer=NO_MAPS, dtypes=CODED_DTYPES),
            Rule(features(), consumer=NO_MAPS, dtypes=CODED_DTYPES),
            Rule(maps(), dtypes=CODED_DTYPES, min_rank=_MAP_RANK),
            Rule(features(), dtypes=CODED_DTYPES),
        ),
        options,
        codec_factory,
    )


def transformer_nvfp4_policy(codec_factory: CodecFactory | None = None, **options: Any) -> RecomputingPolicy:
    """The table's second column. Options as for codec ``nvfp4`` (backend)."""
    check_options(NVFP4, options)
    return _policy((Rule(CodecSpec(NVFP4, options), dtypes=CODED_DTYPES),), options, codec_factory)


def _policy(rules: tuple[Rule, ...], options: dict[str, Any], codec_factory: CodecFactory | None) -> RecomputingPolicy:
    probabilities = spec_with(PROBABILITIES, options)
    *_, signs = first_rules(options)
    first = (
        Rule(LOGARITHMS, consumer=("crossentropy",), dtypes=(torch.float32,)),
        Rule(EXACT, producer=("loss",)),
        Rule(EXACT, consumer=("loss",)),
        Rule(probabilities, producer=("softmax",), dtypes=CODED_DTYPES),
        signs,
    )
    return RecomputingPolicy((*first, *rules), codec_factory=codec_factory, keep_signs=True)
