"""The codecs that policy ``auto`` chooses from unless it is told others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cdu_tools.errors import UserError

from actcodec.policies.policy import EXACT, CodecSpec
from actcodec.policies.policy_data import codec_spec, spec_of

#: A codec's name, a CodecSpec, or a table with ``codec`` and ``options`` as in policy files.
Candidate = str | CodecSpec | Mapping[str, Any]

#: From 1 bit per value to exact; a tensor is offered those that fit its shape. Rounding is stochastic at all but 8 bits of
#: ``sfpr``: what ``auto`` estimates holds for errors that know nothing of the values. Those of ``jpeg-act`` do (it takes away
#: what its table finds small, in every step the same), and gradients suffer several times what is estimated
#: (docs/user/policies.md).
CANDIDATES: tuple[CodecSpec, ...] = (
    *(CodecSpec("division", {"bits": bits, "range": "channel"}) for bits in (1, 2, 4)),
    *(CodecSpec("actnn-sample", {"bits": bits}) for bits in range(1, 9)),
    *(CodecSpec("sparse-sample", {"bits": bits}) for bits in range(1, 9)),
    *(CodecSpec("autoquantz", {"bits": bits}) for bits in (2, 4)),
    CodecSpec("sfpr+zvc"),
    CodecSpec("sfpr"),
    CodecSpec("bypass"),
)


def candidate_specs(candidates: Sequence[Candidate]) -> tuple[CodecSpec, ...]:
    """Candidates as specifications; UserError for anything that is none, and for what keeps no values."""
    if isinstance(candidates, str) or not isinstance(candidates, Sequence) or not candidates:
        raise UserError(f"candidates = {candidates!r} is not allowed: give a list of one codec or more")
    specs = tuple(spec_of(codec_spec(candidate)) for candidate in candidates)
    if any(spec.name == "brc" for spec in specs):
        raise UserError("candidate 'brc' keeps no values: leave it out, what only ReLU reads gets it anyway")
    if any(spec.name == EXACT for spec in specs):
        raise UserError("candidate 'exact' is no codec: use bypass")
    return specs
