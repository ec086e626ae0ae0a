"""Tables of the papers' codecs that a unit has as modes, and of one codec for everything."""

from __future__ import annotations

from typing import Any

from cdu_spec.affine import RangeKind
from cdu_spec.sfpr import PUBLISHED_S
from cdu_tools.errors import UserError

from actcodec.codecs import Codec
from actcodec.policies.policy import CODED_DTYPES, CodecFactory, CodecSpec, Policy, Rule
from actcodec.policies.tables.rules import SPARSE, check_options, first_rules, spec_with

#: Codecs of JPEG-ACT, and the option that the codecs beside them in its table share.
_JPEG, _PUBLISHED = ("jpeg-act", "jpeg-base"), {"S": PUBLISHED_S}


def _table(
    dense: str, sparse: str, unfit: str, options: dict[str, Any], factory: CodecFactory | None, *, keep_signs: bool = False
) -> Policy:
    check_options(dense, options)
    beside = (_PUBLISHED if dense in _JPEG else {}) | options
    rules = (
        *first_rules(options),
        Rule(spec_with(sparse, beside), producer=SPARSE, dtypes=CODED_DTYPES, min_rank=3),
        Rule(spec_with(dense, options), dtypes=CODED_DTYPES),
        Rule(spec_with(unfit, beside), dtypes=CODED_DTYPES),
    )
    return Policy(rules, codec_factory=factory, keep_signs=keep_signs)


def jpeg_act_policy(codec_factory: CodecFactory | None = None, **options: Any) -> Policy:
    """Return JPEG-ACT's policy, with its S. Options as for codec ``jpeg-act`` (dqt, S, ...); others take theirs."""
    return _table("jpeg-act", "sfpr+zvc", "sfpr", options, codec_factory)


def jpeg_base_policy(codec_factory: CodecFactory | None = None, **options: Any) -> Policy:
    """Return JPEG-ACT's policy JPEG-BASE. Options as for codec ``jpeg-base`` (dqt, huffman, ...); others take theirs."""
    return _table("jpeg-base", "sfpr", "sfpr", options, codec_factory)


def sfpr_policy(codec_factory: CodecFactory | None = None, **options: Any) -> Policy:
    """Return the table's column ``sfpr``; ReLU keeps its signs. Options as for codec ``sfpr``.

    JPEG-ACT's own has ``S=1.125, keep_signs=False``.
    """
    return _table("sfpr", "sfpr", "sfpr", options, codec_factory, keep_signs=True)


def sfpr_zvc_policy(codec_factory: CodecFactory | None = None, **options: Any) -> Policy:
    """Return a policy of SFPR+ZVC for all activations, BRC for ReLU, which keeps its signs. Options as for ``sfpr+zvc``."""
    return _table("sfpr+zvc", "sfpr+zvc", "sfpr+zvc", options, codec_factory, keep_signs=True)


def division_policy(codec_factory: CodecFactory | None = None, **options: Any) -> Policy:
    """Return DIVISION's policy: its codec for activations of 8x8 blocks, ActNN's for other shapes, BRC for ReLU.

    Options as for codec ``division``.
    """
    return _table("division", "division", "actnn", options, codec_factory)


def division_channel_policy(codec_factory: CodecFactory | None = None, **options: Any) -> Policy:
    """Return DIVISION's policy with one step for each channel: ``range="channel"``. Other options as for codec ``division``."""
    if "range" in options:
        raise UserError("codec 'division-channel' has no option 'range': its name says it")
    return division_policy(codec_factory, range=RangeKind.CHANNEL.value, **options)


def actnn_policy(codec_factory: CodecFactory | None = None, **options: Any) -> Policy:
    """Return ActNN's policy: its codec for every activation, BRC for ReLU. Options as for codec ``actnn``."""
    return _table("actnn", "actnn", "actnn", options, codec_factory)


def brc_policy(codec_factory: CodecFactory | None = None, **options: Any) -> Policy:
    """Return a policy with BRC for tensors only a ReLU saves, others exact: no gradient changes. Options as for ``brc``."""
    spec = CodecSpec("brc", options)
    rule = Rule(spec, producer=("relu",), consumer=("relu",), dtypes=CODED_DTYPES)
    return Policy((rule,), codec_factory=codec_factory)


def exact_policy(codec_factory: CodecFactory | None = None, **options: Any) -> Policy:
    """Return a policy that keeps every tensor as it is, for comparison and for counting; it takes no options."""
    if options:
        raise UserError(f"codec 'none' has no option {next(iter(options))!r}: it has none")
    return Policy((), codec_factory=codec_factory, companions=False)


def uniform_policy(codec: Codec) -> Policy:
    """Return a policy with one codec object for every activation that it fits, whatever the operation; others stay exact."""
    return Policy((), default=codec)
