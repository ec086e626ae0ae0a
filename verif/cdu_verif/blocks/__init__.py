"""Record of each block: the cases, benches and proofs by which it is verified.

A record's file has the block's name. Parts of blocks that have proofs of their own have records without benches.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from cdu.delivery.blocks import BLOCKS
from cdu_spec.config import CduConfig

from cdu_verif.formal.promises import Promise, tags
from cdu_verif.formal.proof import Property
from cdu_verif.formal.properties import StreamFacts

if TYPE_CHECKING:
    from cdu_verif.cases.case import Cases

Parameters = Mapping[str, Any]


def _none(config: CduConfig) -> list[Property]:
    return []


def _no_bins(config: CduConfig) -> dict[str, list[str]]:
    return {}


@dataclass(frozen=True)
class Record:
    """Verification of a block.

    Parameters
    ----------
    cases
        Returns the cases that the bench ``blocks`` plays. It is a function, because cases import the golden model, and records
        are also read where nothing is simulated.
    benches
        Modules of :mod:`cdu_verif.benches`.
    quick, full
        Parameters of each run that differ from the configuration; the level ``full`` runs the second besides the first.
    bins
        Cover points of a configuration that the benches have to hit.
    streams
        Facts for the proofs of the stream rules; None for a block without streams of its own.
    properties
        Further properties that are proven.
    promised
        Assumptions on its inputs beyond the stream rules, in Verilog: a mutant that differs from the design only for other
        inputs is equivalent.
    """

    cases: Callable[[], Cases] | None = None
    benches: Sequence[str] = ("blocks",)
    quick: Sequence[Parameters] = field(default_factory=lambda: [{}])
    full: Sequence[Parameters] = ()
    bins: Callable[[CduConfig], dict[str, list[str]]] = _no_bins
    streams: StreamFacts | None = field(default_factory=StreamFacts)
    properties: Callable[[CduConfig], list[Property]] = _none
    promised: Promise = field(default_factory=tags)

    @property
    def modules(self) -> list[str]:
        """Return the modules of its tests."""
        return [f"{_BENCHES}.{name}" for name in self.benches]


_BENCHES = "cdu_verif.benches"


def record(name: str) -> Record:
    """Return the record of a block or part. Raises KeyError if there is none."""
    if name not in names():
        raise KeyError(f"no record of {name!r}: use {', '.join(names())}")
    found: Record = importlib.import_module(f"{__name__}.{name}").RECORD
    return found


def names() -> list[str]:
    """Return the names of all blocks and parts that have records, in alphabetical order."""
    return sorted(module.name for module in pkgutil.iter_modules(__path__))


def parts() -> list[str]:
    """Return the parts of blocks, which have proofs but no benches."""
    return [name for name in names() if not record(name).benches]


def cases(name: str) -> Cases:
    """Return the cases of a block. Raises ValueError for a block that is not played by cases."""
    found = record(name).cases
    if found is None:
        known = ", ".join(block for block in BLOCKS if record(block).cases)
        raise ValueError(f"{name} has no cases of its own streams: use {known}")
    return found()
