"""The default candidates of policy ``auto``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cdu_tools.errors import UserError

from actcodec.policies.policy import EXACT, CodecSpec
from actcodec.policies.policy_data import codec_spec, spec_of

#: A codec's name, a CodecSpec, or a table with ``codec`` and ``options`` as in policy files.
Candidate = str | CodecSpec | Mapping[str, Any]

#: Candidates from 1 bit per value to exact; a tensor is offered those that fit its shape. All but ``sfpr`` with 8 bits round
#: stochastically, because the estimate of ``auto`` holds for errors that are independent of the values. Errors of
#: ``jpeg-act`` are not (it removes the coefficients that its table finds small, the same in every step), and its gradient
#: errors are several times the estimate (docs/user/policies.md).
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
    """Return candidates as specifications; UserError for anything else, and for codecs that keep no values."""
    if isinstance(candidates, str) or not isinstance(candidates, Sequence) or not candidates:
        raise UserError(f"candidates = {candidates!r} is not allowed: give a list of one codec or more")
    specs = tuple(spec_of(codec_spec(candidate)) for candidate in candidates)
    if any(spec.name == "brc" for spec in specs):
        raise UserError("candidate 'brc' keeps no values: leave it out, what only ReLU reads gets it anyway")
    if any(spec.name == EXACT for spec in specs):
        raise UserError("candidate 'exact' is no codec: use bypass")
    return specs
