"""Content of cases: integers of many kinds, and their words at a stream."""

from __future__ import annotations

from random import Random

import numpy as np
import torch
from torch import Tensor

from cdu_verif.simulation.ports import Array, Ports, pack_rows


def words(ports: Ports, stream: str, **fields: Tensor | Array) -> list[int]:
    """Return packed payloads of a stream; a payload without named fields is given as ``values=``."""
    port = ports[f"{stream}__payload"]
    named = {name: np.asarray(value) for name, value in fields.items()}
    if [entry["name"] for entry in port["fields"]] == [""]:
        named = {"": named["values"]}
    return pack_rows(port, named)


def generator(rng: Random) -> torch.Generator:
    """Return a torch generator seeded from ``rng``."""
    return torch.Generator().manual_seed(rng.getrandbits(62))


def integers(rng: Random, low: int, high: int, *shape: int) -> Tensor:
    """Return uniform integers ``low`` to ``high``, int64."""
    return torch.randint(low, high + 1, shape, generator=generator(rng))


def mixed_blocks(rng: Random, low: int, high: int, count: int) -> Tensor:
    """Return blocks (count, 8, 8) of very different integers: noise, sparse, smooth, constant, extreme."""
    noise = integers(rng, low, high, count, 8, 8)
    sparse = noise * (integers(rng, 0, 7, count, 8, 8) == 0)
    small = integers(rng, max(low, -3), min(high, 3), count, 8, 8)
    extreme = torch.where(integers(rng, 0, 1, count, 8, 8) == 0, low, high)
    constant = noise[:, :1, :1].expand(-1, 8, 8)
    kinds = torch.stack((noise, sparse, small, extreme, constant))
    return kinds[integers(rng, 0, len(kinds) - 1, count), torch.arange(count)]


def corner_blocks(low: int, high: int) -> dict[str, Tensor]:
    """Return directed blocks (B, 8, 8) by name."""
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
