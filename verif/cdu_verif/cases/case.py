"""What a block bench plays: inputs, settings, and what the golden model says must come out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any, Protocol

from cdu_spec.config import CduConfig

Ports = Mapping[str, Mapping[str, Any]]
#: Packed payloads by stream.
Words = Mapping[str, list[int]]


@dataclass(frozen=True)
class Case:
    """Some jobs of a block.

    Parameters
    ----------
    name
        Says what is special.
    inputs, expected
        Packed payloads by stream. Streams ``NAME__0``, ``NAME__1`` ... are those of lanes that take turns, from 0 on.
    settings
        Values of the ports that are no streams, constant during the case.
    flags
        Outputs that are no streams, after the case.
    events
        Pulses by event; no others may occur.
    steady
        Streams on which the transfers of a full-rate run are consecutive cycles.
    cycles
        Cycles that a full-rate run may take, from the first transfer of an output to the last of any.
    turns
        How many lanes the turn goes on by.
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
        """Transfers at all streams together."""
        return sum(map(len, self.inputs.values())) + sum(map(len, self.expected.values()))

    def turned(self, turn: int) -> Case:
        """The same jobs, of which lane ``turn`` gets the first block in place of lane 0: all lanes are alike."""
        return replace(self, inputs=_turned(self.inputs, turn), expected=_turned(self.expected, turn))


class Cases(Protocol):
    """The cases of one block. All are made for its manifest's ``ports``, with random numbers of ``rng`` only."""

    #: Blocks of 8 rows in a random case, at least and at most; a full run has up to twice as many.
    blocks: tuple[int, int] = (1, 12)
    #: Blocks over which the rate is measured.
    rate_blocks: int = 72
    #: Cycles behind the last transfer of a case until events and flags are what they shall be.
    settling: int = 0
    #: Ports that pulse.
    event_ports: tuple[str, ...] = ("events",)

    def corners(self, config: CduConfig, ports: Ports, rng: Random) -> list[Case]:
        """Directed cases."""

    def random(self, config: CduConfig, ports: Ports, rng: Random, blocks: int) -> Case:
        """Random content, about ``blocks`` times 8 rows."""

    def steady(self, config: CduConfig, ports: Ports, rng: Random, blocks: int) -> list[Case]:
        """Contents for which the rate is measured, each with ``steady`` or ``cycles``."""

    def broken(self, config: CduConfig, ports: Ports, rng: Random) -> list[Case]:
        """Cases in which something is wrong with jobs; none by default."""
        return []

    def defined(self, stream: str, port: Mapping[str, Any], received: list[int]) -> list[int]:
        """Payloads that a stream gave, with zeros for all that is undefined; nothing is by default."""
        return received


def _turned(streams: Words, turn: int) -> Words:
    lanes = sum(stream.rpartition("__")[2].isdigit() for stream in streams)

    def name(stream: str) -> str:
        kind, _, lane = stream.rpartition("__")
        return f"{kind}__{(int(lane) + turn) % lanes}" if lane.isdigit() else stream

    return {name(stream): words for stream, words in streams.items()}
