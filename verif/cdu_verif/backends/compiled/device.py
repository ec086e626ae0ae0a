"""Compiled unit as a device of the reference driver."""

from __future__ import annotations

from collections import defaultdict, deque

import numpy as np
from cdu_driver import Device, DriverError

from cdu_verif.backends.compiled.unit import CompiledUnit, Packet

#: Cycles without a transfer after which a unit is regarded as hanging.
PATIENCE = 100_000


class HangError(DriverError):
    """Unit that makes no progress."""


class CompiledDevice(Device):
    """Registers and streams of a compiled unit, which is clocked while a method waits and never waits for anything else.

    Parameters
    ----------
    unit
        The unit.

    Data are sent from the caller's memory: they must not change before the result is received.
    """

    def __init__(self, unit: CompiledUnit) -> None:
        self.unit = unit
        self._expected: defaultdict[str, deque[Packet]] = defaultdict(deque)

    async def read(self, address: int) -> int:
        """Implement :class:`Device`."""
        return self.unit.read(address)

    async def write(self, address: int, value: int) -> None:
        """Implement :class:`Device`."""
        self.unit.write(address, value)

    async def send(self, port: str, packet: bytes | memoryview) -> None:
        """Implement :class:`Device`."""
        self.unit.queue(port, Packet(np.frombuffer(packet, np.uint8)))

    async def expect(self, port: str, size: int) -> None:
        """Implement :class:`Device`."""
        self._expected[port].append(self.unit.queue(port, Packet(np.empty(size, np.uint8))))

    async def receive(self, port: str) -> memoryview:
        """Implement :class:`Device`. Raises HangError if no port makes progress any more."""
        packet = self._expected[port].popleft()
        while not packet.ended:
            self._run(f"port {port} sends no TLAST", until_packet=True)
        if packet.overflowed or packet.holes:
            fault = "more bytes than a job can have" if packet.overflowed else "a TKEEP with holes"
            raise DriverError(f"port {port} sent {fault}: the unit is broken")
        return packet.array.data[: packet.moved]

    async def cancel(self, port: str) -> None:
        """Implement :class:`Device`."""
        self.unit.cancel(port)
        self._expected[port].clear()

    async def wait_interrupt(self) -> None:
        """Implement :class:`Device`. Raises HangError if no port makes progress any more."""
        while not self.unit.interrupt:
            self._run("there is no interrupt", until_interrupt=True)

    def _run(self, what: str, *, until_packet: bool = False, until_interrupt: bool = False) -> None:
        """Clock the unit for up to PATIENCE cycles; HangError if nothing was transferred in all of them."""
        before = self.unit.moved
        passed = self.unit.run(PATIENCE, until_packet=until_packet, until_interrupt=until_interrupt)
        if passed == PATIENCE and self.unit.moved == before:
            raise HangError(f"{what}, and nothing has moved for {PATIENCE} cycles: the unit hangs")
