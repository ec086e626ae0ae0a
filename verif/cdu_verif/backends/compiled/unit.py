"""One compiled unit: registers, and packets that move through its stream ports while it is clocked."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from cdu_driver import BusError
from cdu_tools.cache import load_library

from cdu_verif.backends.compiled.library import Port

#: Cycles within which a register access must be answered.
PATIENCE = 10_000

_ENDED, _OVERFLOWED, _HOLES = 1, 2, 4


class _Packet(ctypes.Structure):
    _fields_ = (
        ("bytes", ctypes.c_void_p),
        ("size", ctypes.c_uint64),
        ("moved", ctypes.c_uint64),
        ("last", ctypes.c_uint32),
        ("state", ctypes.c_uint32),
    )


class Packet:
    """One packet of a stream, queued, in progress or done. The array is used in place and must not change meanwhile.

    Parameters
    ----------
    array
        Data to send, or a buffer to receive into: contiguous, of any dtype; its bytes count.
    last
        Whether a packet that is sent ends with TLAST.
    """

    def __init__(self, array: npt.NDArray[Any], last: bool = True) -> None:
        if not array.flags.c_contiguous:
            raise ValueError("the array of a packet must be contiguous")
        self.array = array
        self.raw = _Packet(array.ctypes.data, array.nbytes, 0, last, 0)

    @property
    def moved(self) -> int:
        """Return the number of bytes transferred."""
        return int(self.raw.moved)

    @property
    def ended(self) -> bool:
        """Return whether all bytes were sent, or TLAST was received."""
        return bool(self.raw.state & _ENDED)

    @property
    def overflowed(self) -> bool:
        """Return whether more bytes came than the array holds."""
        return bool(self.raw.state & _OVERFLOWED)

    @property
    def holes(self) -> bool:
        """Return whether a transfer had a TKEEP with bytes missing before others."""
        return bool(self.raw.state & _HOLES)


class CompiledUnit:
    """An instance of a unit in a shared library. Instances are independent; each belongs to one thread at a time.

    Calls release Python's lock while the unit runs.

    Parameters
    ----------
    path
        The library (:func:`cdu_verif.backends.compiled.library.unit`).
    streams
        Stream ports of the unit, from :class:`cdu_verif.backends.compiled.library.Design`.
    """

    def __init__(self, path: Path, streams: Sequence[Port]) -> None:
        self._library = _load(path)
        ordered = sorted(streams, key=lambda port: not port.receives)
        self._numbers = {port.name: number for number, port in enumerate(ordered)}
        self.ports = {port.name: port for port in ordered}
        self._unit = self._library.cdu_create()
        # The library only has addresses: packets are referenced here until they have ended.
        self._packets: list[Packet] = []
        self._memory: npt.NDArray[np.uint8] | None = None

    def __del__(self) -> None:
        if unit := getattr(self, "_unit", None):
            self._library.cdu_destroy(unit)

    @property
    def cycle(self) -> int:
        """Return the cycles since the unit was made."""
        return int(self._library.cdu_cycle(self._unit))

    @property
    def rested(self) -> int:
        """Return the clock edges saved because parts of the unit were idle, summed over all parts."""
        return int(self._library.cdu_rested(self._unit))

    @property
    def moved(self) -> int:
        """Return the bytes transferred of the packets that have not ended."""
        return sum(packet.moved for packet in self._packets if not packet.ended)

    @property
    def interrupt(self) -> bool:
        """Return the interrupt output."""
        return bool(self._library.cdu_interrupt(self._unit))

    def reset(self) -> None:
        """Forget all packets and reset the unit."""
        self._library.cdu_reset(self._unit)
        self._packets.clear()

    def write(self, address: int, value: int) -> None:
        """Write a register while streams make progress. BusError if the unit refuses."""
        self._answered(self._library.cdu_write(self._unit, address, value, PATIENCE), f"write of {value:#x} to {address:#x}")

    def read(self, address: int) -> int:
        """Read a register while streams make progress. BusError if the unit refuses."""
        value = ctypes.c_uint32()
        response = self._library.cdu_read(self._unit, address, ctypes.byref(value), PATIENCE)
        self._answered(response, f"read of {address:#x}")
        return value.value

    def memory(self, content: npt.NDArray[np.uint8], base: int, latency: int) -> None:
        """Set the memory at the unit's port from address ``base`` on; the array is used in place, until another one is set.

        The first word of a read, and the answer to a write, are delayed by ``latency`` cycles. ValueError for a unit without
        such a port.
        """
        if not content.flags.c_contiguous or not content.flags.writeable:
            raise ValueError("a memory needs a contiguous array that can be written")
        if not self._library.cdu_memory(self._unit, content.ctypes.data, content.nbytes, base, latency):
            raise ValueError("this unit has no port to memory")
        self._memory = content

    def queue(self, port: str, packet: Packet) -> Packet:
        """Queue a packet to send through a port, or to receive there, behind those that are queued already."""
        if not self.ports[port].receives and not packet.array.flags.writeable:
            raise ValueError("a packet to receive needs an array that can be written")
        self._packets = [waiting for waiting in self._packets if not waiting.ended]
        self._packets.append(packet)
        self._library.cdu_queue(self._unit, self._numbers[port], ctypes.byref(packet.raw))
        return packet

    def cancel(self, port: str) -> None:
        """Drop the packets that are queued at a port.

        A packet that is being sent continues to its end; the rest of one that is being received is dropped.
        """
        self._library.cdu_cancel(self._unit, self._numbers[port])

    def run(self, cycles: int, *, until_packet: bool = False, until_interrupt: bool = False) -> int:
        """Clock the unit for at most ``cycles`` cycles and return the number of cycles that passed.

        Parameters
        ----------
        cycles
            Greatest number of cycles.
        until_packet
            End with the cycle in which a packet ends.
        until_interrupt
            End when the interrupt output is high.
        """
        return int(self._library.cdu_run(self._unit, cycles, until_packet, until_interrupt))

    @staticmethod
    def _answered(response: int, what: str) -> None:
        if response < 0:
            raise BusError(f"{what}: no answer within {PATIENCE} cycles")
        if response:
            raise BusError(f"{what}: refused (response {response})")


@cache
def _load(path: Path) -> ctypes.CDLL:
    """Return the library with the types of its functions."""
    library = load_library(path)
    handle, packet, word = ctypes.c_void_p, ctypes.POINTER(_Packet), ctypes.POINTER(ctypes.c_uint32)
    number, small, flag = ctypes.c_uint64, ctypes.c_uint32, ctypes.c_int
    signatures = {
        "cdu_create": (handle, ()),
        "cdu_destroy": (None, (handle,)),
        "cdu_reset": (None, (handle,)),
        "cdu_queue": (flag, (handle, small, packet)),
        "cdu_cancel": (flag, (handle, small)),
        "cdu_memory": (flag, (handle, handle, number, number, number)),
        "cdu_run": (number, (handle, number, flag, flag)),
        "cdu_write": (flag, (handle, small, small, number)),
        "cdu_read": (flag, (handle, small, word, number)),
        "cdu_interrupt": (flag, (handle,)),
        "cdu_cycle": (number, (handle,)),
        "cdu_rested": (number, (handle,)),
    }
    for name, (result, arguments) in signatures.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library
