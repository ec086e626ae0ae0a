"""Policies for transformers: one copy for tensors that follow from each other, as coarse as the gradient allows.

======================================================  ==========================  =================
activation                                              transformer                 transformer-nvfp4
======================================================  ==========================  =================
what follows from what is kept (recomputation)          nothing                     nothing
ReLU into anything that needs no value                  brc                         brc
softmax of an attention                                 mxint8                      mxint8
logarithms of a softmax, which a cross-entropy reads    bf16                        bf16
queries, keys and values of an attention                feature-klt, by logits      mxint8
what a layer norm reads, or a square of tokens          feature-klt, by token       nvfp4
result of an attention                                  feature-klt, 1 bit up       nvfp4 or mxint8
what a batch normalisation reads                        the codec below, 2 bits up  nvfp4
what a linear layer or attention makes or reads         feature-klt                 nvfp4
other maps                                              blpa-coded                  nvfp4
all else                                                feature-klt                 nvfp4
======================================================  ==========================  =================

Recomputation is described in :mod:`actcodec.policies.groups.recomputation`, the choice of codecs in
docs/methods/transformer.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from cdu_spec.mx import NVFP4
from torch import Tensor

from actcodec import codecs
from actcodec.codecs import Codec
from actcodec.codecs.blpa.blpa_coded import MOST_BITS, BlpaCodedCodec
from actcodec.codecs.blpa.feature_coded import TOKEN
from actcodec.codecs.blpa.feature_klt import FeatureKltCodec
from actcodec.policies.groups.recomputation import Recomputation, RecomputingPolicy
from actcodec.policies.policy import CODED_DTYPES, EXACT, CodecFactory, CodecSpec, Rule, SavedTensor
from actcodec.policies.tables.jpeg_gmc import NO_MAPS
from actcodec.policies.tables.rules import check_options, first_rules, spec_with
from actcodec.saved.operations import Operation

#: Codecs of probabilities and of heads whose errors they amplify, and of logarithms of probabilities. The gradient of a row
#: of logits sums to zero; fewer bits spoil this sum, and the error is large where the summed values are nearly equal in all
#: columns.
PROBABILITIES, LOGARITHMS = "mxint8", "bf16"
#: Functions that normalise tokens, and squares from a root mean square that is written out.
_TOKEN_NORMS, _SQUARES = ("layernorm", "rmsnorm"), ("pow", "square")
_BATCH_NORM = ("batchnorm",)
#: Extra bits, chosen by the weight of errors (docs/methods/transformer.md).
_OF_ATTENTION, _OF_BATCH_NORM = 1, 2
#: Logits up to which queries and keys need no extra bits.
SHARP = 2.0
#: The function whose result is recomputed from the kept queries, keys and values.
_FUSED = "scaled_dot_product_attention"
_MAP_RANK, _TOKENS_RANK = 4, 3


def transformer_policy(codec_factory: CodecFactory | None = None, **options: Any) -> RecomputingPolicy:
    """Return the policy of the table's first column.

    Options as for codec ``feature-klt``: bits and backend; ``steps_of`` applies to the last row of the table.
    """
    bits = codecs.codec(FeatureKltCodec.name, **options).bits  # type: ignore[attr-defined]

    def features(more: float = 0, **others: Any) -> CodecSpec:
        return CodecSpec(FeatureKltCodec.name, options | {"bits": min(bits + more, MOST_BITS)} | others)

    def maps(more: float = 0) -> CodecSpec:
        return spec_with(BlpaCodedCodec.name, options | {"bits": min(bits + more, MOST_BITS)})

    rules = (
        Rule(maps(_OF_BATCH_NORM), consumer=_BATCH_NORM, dtypes=CODED_DTYPES, min_rank=_MAP_RANK),
        Rule(features(_OF_BATCH_NORM), consumer=_BATCH_NORM, dtypes=CODED_DTYPES),
        Rule(features(steps_of=TOKEN), consumer=_TOKEN_NORMS, dtypes=CODED_DTYPES),
        Rule(features(steps_of=TOKEN), consumer=_SQUARES, dtypes=CODED_DTYPES, min_rank=_TOKENS_RANK),
        Rule(features(_OF_ATTENTION), producer=("attention",), dtypes=CODED_DTYPES),
        Rule(features(), producer=NO_MAPS, dtypes=CODED_DTYPES),
        Rule(features(), consumer=NO_MAPS, dtypes=CODED_DTYPES),
        Rule(maps(), dtypes=CODED_DTYPES, min_rank=_MAP_RANK),
        Rule(features(), dtypes=CODED_DTYPES),
    )
    return TransformerPolicy((*_first_rules(options), *rules), options | {"bits": bits}, codec_factory)


def transformer_nvfp4_policy(codec_factory: CodecFactory | None = None, **options: Any) -> RecomputingPolicy:
    """Return the policy of the table's second column. Options as for codec ``nvfp4`` (backend)."""
    check_options(NVFP4, options)
    rules = (
        Rule(spec_with(PROBABILITIES, options), consumer=("attention",), dtypes=CODED_DTYPES),
        Rule(CodecSpec(NVFP4, options), dtypes=CODED_DTYPES),
    )
    return RecomputingPolicy((*_first_rules(options), *rules), codec_factory=codec_factory, keep_signs=True)


def _first_rules(options: dict[str, Any]) -> tuple[Rule, ...]:
    """Return the first rules, which both policies share."""
    *_, signs = first_rules(options)
    return (
        Rule(LOGARITHMS, consumer=("crossentropy",), dtypes=(torch.float32,)),
        Rule(EXACT, producer=("loss",)),
        Rule(EXACT, consumer=("loss",)),
        Rule(spec_with(PROBABILITIES, options), producer=("softmax",), dtypes=CODED_DTYPES),
        signs,
    )


class TransformerPolicy(RecomputingPolicy):
    """The rules of the table, with finer steps for queries and keys as logits grow.

    An error of a query changes a logit by its product with a key, however small a part of the logit that is, and probabilities
    by the exponential of it. Where the squared length of a token of x, times the scale of logits, is more than
    :data:`SHARP`, its codec gets a bit more for each doubling.
    """

    def __init__(self, rules: Sequence[Rule], options: dict[str, Any], codec_factory: CodecFactory | None) -> None:
        super().__init__(rules, codec_factory=codec_factory, keep_signs=True)
        self._options, self._factory = options, codec_factory or codecs.codec
        self._finer: dict[float, Codec] = {}

    def more_bits(self, x: Tensor) -> float:
        """Return extra bits of queries or keys (..., tokens, features) by squared length; rank-3 heads are already scaled."""
        scale = x.shape[-1] ** -0.5 if x.ndim == _MAP_RANK else 1.0
        logit = scale * float(x.detach().float().square().sum(-1).mean())
        return math.ceil(2 * math.log2(max(logit / SHARP, 1.0))) / 2 if math.isfinite(logit) else 0.0

    def finer(self, more: float) -> Codec:
        """Return the codec for tensors of an attention with ``more`` extra bits."""
        bits = min(self._options["bits"] + more, MOST_BITS)
        if bits not in self._finer:
            self._finer[bits] = self._factory(FeatureKltCodec.name, **self._options | {"bits": bits, "heads": True})
        return self._finer[bits]

    def observer(self) -> Recomputation:
        """Implement :class:`Policy`."""
        return _Sharpened(self)


class _Sharpened(Recomputation):
    """The observer of one context."""

    def __init__(self, policy: TransformerPolicy) -> None:
        self._policy = policy
        self._sharpest = 0.0  #: extra bits for queries and keys of the running attention
        self._attention: Operation | None = None

    def member_codec(self, x: Tensor, tensor: SavedTensor, codec: Codec, operation: Operation) -> Codec:
        """Implement :class:`GroupObserver`. An attention module keeps queries and keys before values and the result."""
        if operation.name == "attention" and x.ndim >= _TOKENS_RANK and codec.name == FeatureKltCodec.name:
            if operation is not self._attention:
                self._attention, self._sharpest = operation, 0.0
            if tensor.producer == "attention":
                codec = self._policy.finer(_OF_ATTENTION + self._sharpest)
            else:
                more = self._policy.more_bits(x)
                within = operation.function != _FUSED
                codec = self._policy.finer(max(more, self._sharpest) if within else more)
                self._sharpest = max(more, self._sharpest)
        return super().member_codec(x, tensor, codec, operation)

    def finished(self, operation: Operation, result: Any) -> None:
        """Implement :class:`Observer`. The operation is released, so that its tensors do not live as long as this context."""
        super().finished(operation, result)
        if operation is self._attention:
            self._attention = None
