"""The policies of MX and NVFP4: one codec for every activation; ReLU keeps exact signs beside formats with few octaves."""

from __future__ import annotations

from typing import Any

from cdu_spec.mx import MX_FORMATS, NVFP4, NVFP4_FORMAT

from actcodec.policies.policy import CODED_DTYPES, CodecFactory, Policy, Rule
from actcodec.policies.tables.rules import check_options, first_rules, spec_with

BLOCK_SCALES = {**MX_FORMATS, NVFP4: NVFP4_FORMAT}
#: Octaves from a block's greatest value to the smallest step, up to which small values become zero too often for a ReLU.
_FEW_OCTAVES = 8


def block_scale_policy(name: str, codec_factory: CodecFactory | None = None, **options: Any) -> Policy:
    """Return a policy with one codec for every activation and BRC for ReLU. Options as for the codec of that name."""
    check_options(name, options)
    kind = BLOCK_SCALES[name]
    rules = (*first_rules(options), Rule(spec_with(name, options), dtypes=CODED_DTYPES))
    octaves = kind.emax - kind.emin + kind.fraction_bits
    return Policy(rules, codec_factory=codec_factory, keep_signs=octaves <= _FEW_OCTAVES)
