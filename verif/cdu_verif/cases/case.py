"""Case of a block bench: inputs, settings, and the outputs that the golden model expects."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any, Protocol

from cdu_spec.config import CduConfig

from cdu_verif.simulation.ports import Ports

#: Packed payloads by stream.
Words = Mapping[str, list[int]]


@dataclass(frozen=True)
class Case:
    """Some jobs of a block.

    Parameters
    ----------
    name
        Distinguishes the case from others.
    inputs, expected
        Packed payloads by stream. Streams ``NAME__0``, ``NAME__1`` ... are those of lanes that take turns, from 0 on.
    settings
        Values of the ports that are not streams, constant during the case.
    flags
        Outputs that are not streams, after the case.
    events
        Pulses by event; no others may occur.
    steady
        Streams on which the transfers of a full-rate run are consecutive cycles.
    cycles
        Cycles that a full-rate run may take, from the first transfer of an output to the last of any.
    turns
        Number of lanes by which the turn advances.
    """

    name: str
    inputs: Words
    expected: Words
    settings: Mapping[str, Any] = field(default_factory=dict)
    flags: Mapping[str, int] = field(default_factory=dict)
    events: Mapping[str, int] = field(default_factory=dict)
    steady: tuple[str, ...] = ()
    cycles: int | None = None
    turns: int = 0

    @property
    def transfers(self) -> int:
        """Return the number of transfers of all streams together."""
        return sum(map(len, self.inputs.values())) + sum(map(len, self.expected.values()))

    def turned(self, turn: int) -> Case:
        """Return the same jobs with the first block at lane ``turn`` instead of lane 0: all lanes are alike."""
        return replace(self, inputs=_turned(self.inputs, turn), expected=_turned(self.expected, turn))


class Cases(Protocol):
    """Cases of one block. All are made for its manifest's ``ports``, with random numbers from ``rng`` only."""

    #: Blocks of 8 rows in a random case, at least and at most; a full run has up to twice as many.
    blocks: tuple[int, int] = (1, 12)
    #: Blocks over which the rate is measured.
    rate_blocks: int = 72
    #: Cycles after the last transfer of a case until events and flags are final.
    settling: int = 0
    #: Ports that pulse.
    event_ports: tuple[str, ...] = ("events",)

    def corners(self, config: CduConfig, ports: Ports, rng: Random) -> list[Case]:
        """Return directed cases."""

    def random(self, config: CduConfig, ports: Ports, rng: Random, blocks: int) -> Case:
        """Return random content of about ``blocks`` times 8 rows."""

    def steady(self, config: CduConfig, ports: Ports, rng: Random, blocks: int) -> list[Case]:
        """Return the cases with which the rate is measured, each with ``steady`` or ``cycles``."""

    def broken(self, config: CduConfig, ports: Ports, rng: Random) -> list[Case]:
        """Return cases with faulty jobs; none by default."""
        return []

    def defined(self, stream: str, port: Mapping[str, Any], received: list[int]) -> list[int]:
        """Return payloads received from a stream with zeros for undefined fields; by default all are defined."""
        return received


def _turned(streams: Words, turn: int) -> Words:
    lanes = sum(stream.rpartition("__")[2].isdigit() for stream in streams)

    def name(stream: str) -> str:
        kind, _, lane = stream.rpartition("__")
        return f"{kind}__{(int(lane) + turn) % lanes}" if lane.isdigit() else stream

    return {name(stream): words for stream, words in streams.items()}
