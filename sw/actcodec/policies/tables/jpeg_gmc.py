"""Policy ``jpeg-gmc``: one copy for each batch normalisation and the readers of its result, transformed and coded by GMC.

======================================  ====================================================================
activation                              kept
======================================  ====================================================================
batch normalisation, ReLU, next layer   one copy of the result (:mod:`actcodec.policies.groups.norm_groups`)
other maps: conv, sum, pool, input      jpeg-gmc
ReLU into anything that needs no value  brc
other ReLU into other layers            jpeg-gmc, with exact signs (:mod:`actcodec.codecs.signed_copies`)
dropout; ReLU, pool that do not fit     sfpr+zvc
tokens, heads of attention, features    sfpr
others that do not fit (W < 8 ...)      sfpr
======================================  ====================================================================

Tokens and features have hardly any zeros, for which ZVC would pay.
"""

from __future__ import annotations

from typing import Any

from cdu_spec.modes import JPEG_GMC

from actcodec import codecs
from actcodec.policies.groups.norm_groups import GroupPolicy, copy_codec
from actcodec.policies.policy import CODED_DTYPES, CodecFactory, Rule
from actcodec.policies.tables.rules import SPARSE, check_options, first_rules, spec_with

#: Producers or consumers of 4-axis tensors that are no maps: heads of an attention, matrices in batches, tokens in rows.
NO_MAPS = ("linear", "attention", "layernorm")


def jpeg_gmc_policy(codec_factory: CodecFactory | None = None, **options: Any) -> GroupPolicy:
    """Return the policy of the table above. Options as for codec ``jpeg-gmc``; the other codecs take those they know."""
    check_options(JPEG_GMC, options)
    maps = (codec_factory or codecs.codec)(JPEG_GMC, **options)
    sparse, others = spec_with("sfpr+zvc", options), spec_with("sfpr", options)
    rules = (
        *first_rules(options),
        Rule(sparse, producer=("dropout",), dtypes=CODED_DTYPES, min_rank=3),
        Rule(others, producer=NO_MAPS, dtypes=CODED_DTYPES),
        Rule(others, consumer=NO_MAPS, dtypes=CODED_DTYPES),
        Rule(copy_codec(maps) or maps, producer=("relu",), dtypes=CODED_DTYPES),
        Rule(maps, dtypes=CODED_DTYPES),
        Rule(sparse, producer=SPARSE, dtypes=CODED_DTYPES, min_rank=3),
        Rule(others, dtypes=CODED_DTYPES),
    )
    return GroupPolicy(rules, codec_factory=codec_factory)
