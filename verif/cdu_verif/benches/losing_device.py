"""A device that loses data on their way to a unit."""

from __future__ import annotations

from cdu_driver import Device


class LosingDevice(Device):
    """A device that loses ``lost`` bytes at the end of a packet for one port, or all of it; ``before`` packets pass first."""

    def __init__(self, inner: Device, port: str, lost: int | None, before: int = 0) -> None:
        self._inner, self._port, self._lost, self._before = inner, port, lost, before

    async def send(self, port: str, packet: bytes | memoryview) -> None:
        if port == self._port:
            self._before -= 1
        if port != self._port or self._before != -1:
            await self._inner.send(port, packet)
        elif self._lost is not None:
            await self._inner.send(port, packet[: len(packet) - self._lost])

    async def read(self, address: int) -> int:
        return await self._inner.read(address)

    async def write(self, address: int, value: int) -> None:
        await self._inner.write(address, value)

    async def expect(self, port: str, size: int) -> None:
        await self._inner.expect(port, size)

    async def receive(self, port: str) -> bytes | memoryview:
        return await self._inner.receive(port)

    async def cancel(self, port: str) -> None:
        await self._inner.cancel(port)

    async def wait_interrupt(self) -> None:
        await self._inner.wait_interrupt()
