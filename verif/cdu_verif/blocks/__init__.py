"""One record for each block: what it is tried with, by which benches, and what is proven of it.

The file of a record bears the block's name. Parts of blocks that have proofs of their own have records without benches.
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
    """What verification knows of a block.

    Parameters
    ----------
    cases
        Gives the cases that the bench ``blocks`` plays. A function, because cases import the golden model, and records are
        read where nothing is simulated.
    benches
        Modules of :mod:`cdu_verif.benches`.
    quick, full
        Parameters that differ from the configuration, run by run; the level ``full`` adds the second to the first.
    bins
        Cover points of a configuration that the benches have to hit.
    streams
        What the proofs of the stream rules have to know; None of what has no streams of its own.
    properties
        What is proven of it besides.
    promised
        What it is promised of its inputs beyond the stream rules, as assumptions in Verilog: a mutant that only other inputs
        tell from the design is none.
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
        """The modules with its tests."""
        return [f"{_BENCHES}.{name}" for name in self.benches]


_BENCHES = "cdu_verif.benches"


def record(name: str) -> Record:
    """The record of a block or part. Raises KeyError when there is none."""
    if name not in names():
        raise KeyError(f"no record of {name!r}: use {', '.join(names())}")
    found: Record = importlib.import_module(f"{__name__}.{name}").RECORD
    return found


def names() -> list[str]:
    """All that have records, in the order of the alphabet."""
    return sorted(module.name for module in pkgutil.iter_modules(__path__))


def parts() -> list[str]:
    """Parts of blocks, which have proofs but no benches."""
    return [name for name in names() if not record(name).benches]


def cases(name: str) -> Cases:
    """The cases of a block. Raises ValueError for one that is not played by cases."""
    found = record(name).cases
    if found is None:
        known = ", ".join(block for block in BLOCKS if record(block).cases)
        raise ValueError(f"{name} has no cases of its own streams: use {known}")
    return found()
