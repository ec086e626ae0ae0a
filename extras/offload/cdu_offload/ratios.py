"""Compression ratios of each method on each kind of activation: measured by ``cdu train``, applied to full-size networks.

A row of ``results.json`` is one tensor of a small network, with the operation that made it, its codec and ratio. Rows are added
up (bytes, not ratios) by kind and operation.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import prod
from pathlib import Path
from typing import Any

from cdu_spec.geometry import BLOCK_SIDE
from cdu_tools.errors import UserError
from cdu_tools.texts import read_text

from cdu_offload.network import VALUE_BYTES, OffloadActivation

SHIPPED = Path(__file__).with_name("ratios.json")
#: Producers of tensors with many zeros, as in actcodec's policies.
_SPARSE = ("relu", "pool", "dropout")
#: Producers and forms that are not offloaded: losses, masks, and inputs of pools.
_LEFT_OUT = ("softmax", "loss", "mask")
#: Names in ``cdu train`` of tensors that are kept as they are, and of the network without compression.
_EXACT, _BASELINE = ("exact", "loss"), "none"


@dataclass
class Ratios:
    """Ratios of one method on one network: bytes before and after, by (kind, producer)."""

    sums: dict[tuple[str, str], tuple[float, float]] = field(default_factory=dict)

    def add(self, kind: str, producer: str, original: float, kept: float) -> None:
        """Count a tensor."""
        before, after = self.sums.get((kind, producer), (0.0, 0.0))
        self.sums[kind, producer] = before + original, after + kept

    def count(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Count the rows of a training run, from results.json or from actcodec's statistics.

        Tensors that a loss reads stay exact in every method. Exact rows count only in kinds that a method does not code at all.
        """
        kinds = [(kind_of(row), row) for row in rows]
        coded = {kind for kind, row in kinds if row["codec"] not in _EXACT}
        for kind, row in kinds:
            if kind is not None and (row["codec"] not in _EXACT or kind not in coded):
                if not row["ratio"] > 0:
                    raise ValueError("a ratio is a positive number")
                original = float(VALUE_BYTES * prod(row["shape"]) * row.get("count", 1))
                self.add(kind, row["op"], original, original / row["ratio"])

    def ratio(self, activation: OffloadActivation) -> float:
        """Return the ratio of tensors of the same kind and producer; else of the same kind; else of all.

        Methods that do not keep signs separately have no rows of that kind; such a tensor counts as sparse for them.
        """
        kind, producer = activation.kind, activation.producer
        kinds = [kind, "sparse"] if kind == "signs" else [kind]
        for wanted in kinds:
            for chosen in ([(wanted, producer)], [key for key in self.sums if key[0] == wanted]):
                found = [self.sums[key] for key in chosen if key in self.sums]
                if found:
                    return _quotient(found)
        return _quotient(self.sums.values())

    def to_dict(self) -> dict[str, list[float]]:
        """Return plain values for :meth:`from_dict`."""
        return {" ".join(key): list(sums) for key, sums in self.sums.items()}

    @classmethod
    def from_dict(cls, data: Mapping[str, list[float]]) -> Ratios:
        """Invert :meth:`to_dict`."""
        made = cls()
        for key, (original, kept) in data.items():
            kind, producer = key.split(" ")
            made.add(kind, producer, original, kept)
        return made


def _quotient(sums: Iterable[tuple[float, float]]) -> float:
    pairs = list(sums)
    return sum(before for before, _ in pairs) / sum(after for _, after in pairs)


#: Model of ``cdu train`` -> codec -> ratios.
RatioTable = dict[str, dict[str, Ratios]]


def kind_of(row: Mapping[str, Any]) -> str | None:
    """Return the kind of a tensor in results.json; None for tensors that are not offloaded."""
    shape = row["shape"]
    if row["op"] in _LEFT_OUT or row["codec"] in ("shape", "bits"):
        return None
    if row["codec"] == "brc":
        return "signs"
    if row["op"] in _SPARSE and len(shape) > 2:
        return "sparse"
    fits = len(shape) == 4 and shape[3] >= BLOCK_SIDE and prod(shape[:3]) >= BLOCK_SIDE
    return "dense" if fits else "unfit"


def measured(results: Mapping[str, Any]) -> RatioTable:
    """Return the ratios in a results.json of ``cdu train``; runs of several seeds are added up."""
    table: dict[str, Ratios] = {}
    for run in results["runs"]:
        if run["codec"] == _BASELINE:
            continue
        table.setdefault(run["codec"], Ratios()).count(run["tensors"])
    return {results["model"]: table}


def read(path: Path) -> RatioTable:
    """Return the ratios in a results.json; UserError if it is none."""
    try:
        found = measured(json.loads(read_text(path)))
    except OSError as error:
        raise UserError(f"cannot read --ratios {path}: {error.strerror}") from None
    except (ValueError, KeyError, TypeError):
        raise UserError(f"--ratios {path} is no results.json of cdu train: give the one that cdu train -o DIR wrote") from None
    if not any(found.values()):
        raise UserError(f"--ratios {path} has no compressed run: give cdu train at least one --codec besides none")
    return found


def shipped() -> RatioTable:
    """Return the ratios that come with the package."""
    data = json.loads(SHIPPED.read_text(encoding="utf-8"))["models"]
    return {model: {codec: Ratios.from_dict(sums) for codec, sums in table.items()} for model, table in data.items()}
