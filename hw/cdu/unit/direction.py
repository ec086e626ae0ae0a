"""Parts common to both directions of a unit: ports, and the path around the alignment buffer and the transforms."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

from amaranth.hdl import Module, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect
from cdu_spec.config import CduConfig
from cdu_spec.register_types import Channel

from cdu.alignment.alignment_buffer import AlignmentBuffer
from cdu.alignment.alignment_buffer import Direction as Order
from cdu.control.error_places import Findings
from cdu.parts.join import join_ports
from cdu.words import Job, JobEvents, Scale, ShiftBanks


class DirectionPorts(wiring.Signature):
    """Ports of a direction that takes words of the layout ``i`` and gives words of the layout ``o``.

    Units with a ledger have ``found``, the :class:`~cdu.control.error_places.Findings` that only the path sees.
    """

    def __init__(self, config: CduConfig, channel: Channel, i: data.Layout, o: data.Layout) -> None:
        super().__init__(
            {
                "job": In(stream.Signature(Job())),
                "scales": In(stream.Signature(Scale())),
                "i": In(stream.Signature(i)),
                "o": Out(stream.Signature(o)),
                "shifts": In(ShiftBanks),
                "events": Out(JobEvents()),
                "idle": Out(1),
                **({"found": Out(Findings(config, channel, inside=True))} if config.ledger_jobs else {}),
            }
        )


class DirectionPath(wiring.Component):
    """Base of a direction's path, without its alignment buffer and N transforms, which the other direction may share.

    Parameters
    ----------
    config
        ``cdus``, ``modes``.
    ports
        Ports of the direction.
    alignment, transform
        Words to and from the alignment buffer, and to and from each transform.

    Ports
    -----
    job, scales, i, o, shifts, events, idle, found
        Signals of ``ports``.
    to_alignment, from_alignment
        Streams to and from the alignment buffer (only with modes in tiles).
    to_transform, from_transform
        N streams each, to and from the transforms (only with jpeg-act).
    """

    job: stream.Interface
    scales: stream.Interface
    i: stream.Interface
    o: stream.Interface
    shifts: Any
    events: Any
    idle: Signal
    found: Any
    to_alignment: stream.Interface
    from_alignment: stream.Interface
    to_transform: list[stream.Interface]
    from_transform: list[stream.Interface]

    def __init__(
        self,
        config: CduConfig,
        ports: DirectionPorts,
        *,
        alignment: tuple[data.Layout, data.Layout],
        transform: tuple[data.Layout, data.Layout],
    ) -> None:
        self.config = config
        members = dict(ports.members)
        if config.has_tiles:
            to_buffer, from_buffer = map(stream.Signature, alignment)
            members |= {"to_alignment": Out(to_buffer), "from_alignment": In(from_buffer)}
        if config.has_dct:
            to_lanes, from_lanes = map(stream.Signature, transform)
            members |= {
                "to_transform": Out(to_lanes).array(config.cdus),
                "from_transform": In(from_lanes).array(config.cdus),
            }
        super().__init__(members)


class OneDirection(wiring.Component):
    """A :class:`DirectionPath` with an alignment buffer and transforms of its own.

    Ports: :class:`DirectionPorts`.
    """

    #: Order into which the alignment buffer brings values.
    order: ClassVar[Order]
    #: Name of a transform as a submodule.
    transform_name: ClassVar[str]

    job: stream.Interface
    scales: stream.Interface
    i: stream.Interface
    o: stream.Interface
    shifts: Any
    events: Any
    idle: Signal
    found: Any

    def __init__(self, config: CduConfig, ports: DirectionPorts) -> None:
        self.config = config
        super().__init__(ports)

    @abstractmethod
    def path(self) -> DirectionPath:
        """Make the path around the alignment buffer and the transforms."""

    @abstractmethod
    def transform(self) -> Any:
        """Make one transform."""

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.path = path = self.path()
        if self.config.has_tiles:
            m.submodules.alignment = alignment = AlignmentBuffer(self.config, self.order)
            connect(m, path.to_alignment, alignment.i)
            connect(m, alignment.o, path.from_alignment)
        if self.config.has_dct:
            for lane in range(self.config.cdus):
                m.submodules[f"{self.transform_name}{lane}"] = transform = self.transform()
                connect(m, path.to_transform[lane], transform.i)
                connect(m, transform.o, path.from_transform[lane])
        join_ports(m, self, path)
        return m


def ends_job(words: stream.Interface) -> Value:
    """Return whether the last word of a job transfers in this cycle at a stream of blocks or tiles."""
    word = words.payload
    last: Value = words.valid & words.ready & word["ends"] & word["tag"]["last"]
    return last


def ends_packet(words: stream.Interface) -> Value:
    """Return whether the last word of a packet transfers in this cycle at a stream of packets."""
    ends: Value = words.valid & words.ready & words.payload["last"]
    return ends
