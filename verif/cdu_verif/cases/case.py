"""What a block bench plays: inputs, settings, and what the golden model says must come out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any, Protocol

import numpy as np
import torch
from cdu_spec.config import CduConfig
from torch import Tensor

from cdu_verif.simulation.ports import Array, pack_rows

Ports = Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True)
class Case:
    """One job of a block with one input stream ``i`` and one output stream ``o``.

    Parameters
    ----------
    name
        Says what is special.
    inputs, expected
        Packed payloads of ``i`` and ``o``.
    settings
        Values of the ports that are no streams, constant during the case.
    flags
        Outputs that are no streams, after the case.
    steady
        Streams on which the transfers of a full-rate run are consecutive cycles.
    """

    name: str
    inputs: list[int]
    expected: list[int]
    settings: Mapping[str, Any] = field(default_factory=dict)
    flags: Mapping[str, int] = field(default_factory=dict)
    steady: tuple[str, ...] = ("i", "o")


class Cases(Protocol):
    """The cases of one block."""

    def corners(self, config: CduConfig, ports: Ports, rng: Random) -> list[Case]:
        """Directed cases."""

    def random(self, config: CduConfig, ports: Ports, rng: Random, blocks: int) -> Case:
        """Random content, about ``blocks`` times 8 beats."""

    def steady(self, config: CduConfig, ports: Ports, rng: Random, blocks: int) -> list[Case]:
        """Contents for which the rate is measured."""


def words(ports: Ports, stream: str, **fields: Tensor | Array) -> list[int]:
    """Packed payloads of a stream; a payload without named fields is given as ``values=``."""
    port = ports[f"{stream}__payload"]
    named = {name: np.asarray(value) for name, value in fields.items()}
    if [entry["name"] for entry in port["fields"]] == [""]:
        named = {"": named["values"]}
    return pack_rows(port, named)


def generator(rng: Random) -> torch.Generator:
    """A torch generator that depends on ``rng``."""
    return torch.Generator().manual_seed(rng.getrandbits(62))


def integers(rng: Random, low: int, high: int, *shape: int) -> Tensor:
    """Uniform integers ``low`` to ``high``, int64."""
    return torch.randint(low, high + 1, shape, generator=generator(rng))


def mixed_blocks(rng: Random, low: int, high: int, count: int) -> Tensor:
    """Blocks (count, 8, 8) of integers of very different kinds: noise, sparse, smooth, constant, extreme."""
    noise = integers(rng, low, high, count, 8, 8)
    sparse = noise * (integers(rng, 0, 7, count, 8, 8) == 0)
    small = integers(rng, max(low, -3), min(high, 3), count, 8, 8)
    extreme = torch.where(integers(rng, 0, 1, count, 8, 8) == 0, low, high)
    constant = noise[:, :1, :1].expand(-1, 8, 8)
    kinds = torch.stack((noise, sparse, small, extreme, constant))
    return kinds[integers(rng, 0, len(kinds) - 1, count), torch.arange(count)]


def corner_blocks(low: int, high: int) -> dict[str, Tensor]:
    """Directed blocks (B, 8, 8) by name."""
    board = (torch.arange(8)[:, None] + torch.arange(8)) % 2
    impulses = torch.zeros(128, 8, 8, dtype=torch.int64)
    for place in range(64):
        impulses[place].view(-1)[place] = high
        impulses[64 + place].view(-1)[place] = low
    columns = (torch.arange(8) % 2).expand(8, 8)
    return {
        "zeros": torch.zeros(2, 8, 8, dtype=torch.int64),
        "extremes": torch.stack((torch.full((8, 8), low), torch.full((8, 8), high))),
        "alternating": torch.stack([torch.where(mask == 0, low, high) for mask in (board, 1 - board, columns, columns.T)]),
        "one_nonzero": impulses,
    }
