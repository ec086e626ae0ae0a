"""BLPA in training: K-bit copies of every activation, one for each group of batch normalisation, ReLU and the next layer.

Policy ``blpa`` has the paper's fixed point (codec ``blpa-float``), policy ``blpa-coded`` copies that are predicted and entropy
coded (codec ``blpa-coded``). A tensor outside a group (:mod:`actcodec.policies.groups.norm_groups`) has a copy of its own, with
the range given by its own mean and deviation.
"""

from __future__ import annotations

from typing import Any

from actcodec.codecs.blpa.blpa_coded import BlpaCodedCodec
from actcodec.codecs.blpa.blpa_float import BlpaFloatCodec
from actcodec.policies.groups.norm_groups import GroupPolicy
from actcodec.policies.policy import CODED_DTYPES, CodecFactory, CodecSpec, Rule
from actcodec.policies.tables.rules import first_rules


def blpa_policy(codec_factory: CodecFactory | None = None, **options: Any) -> GroupPolicy:
    """Return BLPA's policy. Options as for codec ``blpa-float`` (bits); UserError for others."""
    return _policy(BlpaFloatCodec.name, options, codec_factory)


def blpa_coded_policy(codec_factory: CodecFactory | None = None, **options: Any) -> GroupPolicy:
    """Return BLPA's groups with copies that are predicted and entropy coded. Options as for codec ``blpa-coded`` (bits)."""
    return _policy(BlpaCodedCodec.name, options, codec_factory)


def _policy(codec: str, options: dict[str, Any], codec_factory: CodecFactory | None) -> GroupPolicy:
    rules = (*first_rules({}), Rule(CodecSpec(codec, options), dtypes=CODED_DTYPES))
    return GroupPolicy(rules, codec_factory=codec_factory)
