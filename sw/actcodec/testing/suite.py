"""The conformance suite for one codec, which may be defined in another package."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import torch

from actcodec.codecs import Codec
from actcodec.testing.pairwise import pairwise
from actcodec.testing.rows import ROWS, WHOLE
from actcodec.testing.subject import Subject

_Given = TypeVar("_Given")


def check_codec(kind: Callable[..., Codec], *, full: bool = False) -> int:
    """Hold a codec to the rows of the conformance suite that apply to it, on the CPU, and return the number of cases.

    docs/developer/add-a-codec.md lists what the rows require. Cases are chosen so that every width, format, shape and backend
    meets every other; random numbers of the cases are seeded, and the caller's are not drawn.

    Parameters
    ----------
    kind
        Class or function that returns the codec; all its parameters need defaults. The option ``bits``, if there is one,
        chooses widths, ``rounding``, ``nonfinite`` and ``backend`` have the meaning that they have for codecs of the catalogue.
    full
        Check the product of all widths, formats, shapes and backends.

    Raises AssertionError, or the codec's own error, with a note that names row and case.
    """
    subject, count = Subject(kind), 0
    with torch.random.fork_rng(devices=()):
        for row in ROWS.values():
            cases = row.product(subject)
            for case in cases if full or not cases else pairwise(cases):
                _run(row.check, case, f"row {row.name}, case {case}")
                count += 1
        for check in WHOLE:
            _run(check, subject, f"row {check.__name__}, codec {subject}")
            count += 1
    return count


def _run(check: Callable[[_Given], None], given: _Given, where: str) -> None:
    torch.manual_seed(0)
    try:
        check(given)
    except Exception as error:
        error.add_note(where)
        raise
