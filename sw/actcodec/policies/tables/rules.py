"""Rules that several tables share."""

from __future__ import annotations

from typing import Any

from cdu_tools.errors import UserError

from actcodec import codecs
from actcodec.policies.policy import CODED_DTYPES, EXACT, CodecSpec, Rule

#: Producers of tensors with many zeros.
SPARSE = ("relu", "pool", "dropout")
#: Losses and softmax results stay exact.
LOSS_RULES = (Rule(EXACT, producer=("softmax", "loss")), Rule(EXACT, consumer=("loss",)))


def spec_with(name: str, options: dict[str, Any]) -> CodecSpec:
    """Return a specification with those of ``options`` that the codec takes."""
    allowed = codecs.codec_options(name)
    return CodecSpec(name, {key: value for key, value in options.items() if key in allowed})


def first_rules(options: dict[str, Any]) -> tuple[Rule, ...]:
    """Return the rules common to all tables: losses and softmax exact, signs for ReLU, with the options that ``brc`` takes."""
    return (
        *LOSS_RULES,
        Rule(spec_with("brc", options), producer=("relu",), consumer=("relu",), dtypes=CODED_DTYPES),
    )


def check_options(codec: str, options: dict[str, Any]) -> None:
    """Raise UserError for an option that a codec does not have."""
    allowed = codecs.codec_options(codec)
    for option in options:
        if option not in allowed:
            choice = f"use {', '.join(allowed)}" if allowed else "it has none"
            raise UserError(f"codec {codec!r} has no option {option!r}: {choice}")
