"""A compiled unit as the device of the reference driver."""

from __future__ import annotations

from collections import defaultdict, deque

import numpy as np
from cdu_driver import Device, DriverError

from cdu_verif.backends.compiled.unit import CompiledUnit, Packet

#: Cycles without any transfer after which a unit counts as hanging.
PATIENCE = 100_000


class HangError(DriverError):
    """A unit that does not go on."""


class CompiledDevice(Device):
    """Registers and streams of a compiled unit. It is clocked as long as a method waits, so nothing outside is waited for.

    Parameters
    ----------
    unit
        The unit.

    Data are sent from where they are: they must not change before the result is received.
    """

    def __init__(self, unit: CompiledUnit) -> None:
        self.unit = unit
        self._expected: defaultdict[str, deque[Packet]] = defaultdict(deque)

    async def read(self, address: int) -> int:
        """See :class:`Device`."""
        return self.unit.read(address)

    async def write(self, address: int, value: int) -> None:
        """See :class:`Device`."""
        self.unit.write(address, value)

    async def send(self, port: str, packet: bytes | memoryview) -> None:
        """See :class:`Device`."""
        self.unit.queue(port, Packet(np.frombuffer(packet, np.uint8)))

    async def expect(self, port: str, size: int) -> None:
        """See :class:`Device`."""
        self._expected[port].append(self.unit.queue(port, Packet(np.empty(size, np.uint8))))

    async def receive(self, port: str) -> memoryview:
        """See :class:`Device`. Raises HangError when nothing moves any more."""
        packet = self._expected[port].popleft()
        while not packet.ended:
            self._run(f"port {port} sends no TLAST", until_packet=True)
        if packet.overflowed or packet.holes:
            fault = "more bytes than a job can have" if packet.overflowed else "a TKEEP with holes"
            raise DriverError(f"port {port} sent {fault}: the unit is broken")
        return packet.array.data[: packet.moved]

    async def cancel(self, port: str) -> None:
        """See :class:`Device`."""
        self.unit.cancel(port)
        self._expected[port].clear()

    async def wait_interrupt(self) -> None:
        """See :class:`Device`. Raises HangError when nothing moves any more."""
        while not self.unit.interrupt:
            self._run("there is no interrupt", until_interrupt=True)

    def _run(self, what: str, *, until_packet: bool = False, until_interrupt: bool = False) -> None:
        """Clock for a while; HangError when the whole while passed and nothing moved in it."""
        before = self.unit.moved
        passed = self.unit.run(PATIENCE, until_packet=until_packet, until_interrupt=until_interrupt)
        if passed == PATIENCE and self.unit.moved == before:
            raise HangError(f"{what}, and nothing has moved for {PATIENCE} cycles: the unit hangs")
