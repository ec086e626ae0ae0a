"""A unit whose ports have clocks of their own."""

from __future__ import annotations

from cdu_verif.blocks import Record
from cdu_verif.cases.parameters import CODERS, EVERY

_ASYNC = {"reset_kind": "async"}

RECORD = Record(
    benches=["array", "array_errors"],
    quick=[{}],
    full=[
        {"own_clocks": ("registers", "packed"), "cdus": 2, "duplex": "half", "reset_active": "low", **_ASYNC, **CODERS},
        *({"own_clocks": (name,), **_ASYNC, **EVERY} for name in ("registers", "values", "packed")),
    ],
    streams=None,
)
