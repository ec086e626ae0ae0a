"""The channels of AXI ports, AXI4-Lite and AXI4-Stream alike: a payload, its valid, its ready."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from amaranth.lib import wiring
from amaranth.lib.wiring import In

_VALID, _READY = "valid", "ready"


@dataclass(frozen=True)
class Channel:
    """One channel of a component, by the names of its members.

    Parameters
    ----------
    stem
        What its names begin with: ``s_axil_aw`` of ``s_axil_awvalid``.
    payload
        Names of the members that valid and ready go with.
    receives
        Whether the component takes what comes.
    """

    stem: str
    payload: tuple[str, ...]
    receives: bool

    @property
    def port(self) -> str:
        """The port that it is a part of: ``s_axil``."""
        return self.stem.rpartition("_")[0]

    @property
    def valid(self) -> str:
        """Name of its valid."""
        return self.stem + _VALID

    @property
    def ready(self) -> str:
        """Name of its ready."""
        return self.stem + _READY

    @property
    def names(self) -> tuple[str, ...]:
        """All of its members."""
        return (*self.payload, self.valid, self.ready)


def channels(members: Mapping[str, wiring.Member]) -> Iterator[Channel]:
    """All channels among the members of a signature, in their order."""
    for name, member in list(members.items()):
        if name.endswith(_VALID):
            stem = name.removesuffix(_VALID)
            own = (other for other in members if other.startswith(stem) and not other.endswith((_VALID, _READY)))
            yield Channel(stem, tuple(own), member.flow is In)
