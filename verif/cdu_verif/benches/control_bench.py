"""Bench of the control of a unit: cocotbext-axi at its register port, and two data paths that only count."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import cocotb
from cdu_spec.port_fields import pack, unpack
from cdu_spec.register_types import REGISTER_BYTES, Channel
from cdu_spec.registers import address, register
from cocotb.clock import Clock
from cocotb.triggers import ReadOnly, RisingEdge
from cocotbext.axi import AxiLiteBus, AxiLiteMaster

from cdu_verif.simulation.bench import CLOCK_NS, Bench
from cdu_verif.simulation.patterns import PATTERNS, Pattern

_PREFIX = "s_axil"
#: Cycles after which an expected event is regarded as missing.
_PATIENCE = 3000


#: Signals that describe a job when it is started; a channel may lack some.
_TOLD = ("scaled", "scale_order", "expected_length")


class DataPath:
    """Model of a data path behind one channel of the control: takes jobs and scales at times, and drives what a test sets.

    ``traffic``, if set, is called in every cycle for the inputs of that cycle, ``observe`` when the cycle has settled.
    """

    def __init__(self, bench: Bench, channel: Channel) -> None:
        self._bench, self._name = bench, channel.value
        self.jobs, self.scales = bench.sinks[f"{self._name}__job"], bench.sinks[f"{self._name}__scales"]
        self._told = [name for name in _TOLD if f"{self._name}__{name}" in bench.ports]
        self._starts: list[dict[str, Any]] = []
        self.room = True  #: for the description of one more job
        self._next: dict[str, Any] = {}
        self._driven: dict[str, Any] = {}
        self.traffic: Callable[[], dict[str, Any]] | None = None
        self.observe: Callable[[], None] | None = None
        self.inputs: dict[str, Any] = {}  #: of this cycle
        self.job_waits = False  #: the job stream was valid in this cycle
        self.abort_cycles: list[int] = []
        self.flush_cycles: list[int] = []

    def pulse(self, **inputs: Any) -> None:
        """Set inputs for the next cycle only."""
        self._next |= inputs

    def shown_jobs(self) -> list[dict[str, int]]:
        """Return the jobs that were taken since the last call."""
        return self._shown(self.jobs)

    def shown_scales(self) -> list[dict[str, int]]:
        """Return the scales that were taken since the last call."""
        return self._shown(self.scales)

    def shown_starts(self) -> list[dict[str, Any]]:
        """Return the descriptions of the jobs that were started since the last call."""
        shown, self._starts = self._starts, []
        return shown

    def shifts(self, bank: int) -> list[int]:
        """Return a shift table as the data path sees it."""
        port = self._bench.ports[f"{self._name}__shifts"]
        entries: list[int] = unpack(port, self._bench.get(port["name"]))
        half = len(entries) // 2
        return entries[bank * half : (bank + 1) * half]

    def drive(self) -> None:
        """Drive the inputs of this cycle."""
        wanted = {"room": int(self.room)} | (self.traffic() if self.traffic else {}) | self._next
        self._next = {}
        for name in {*self._driven, *wanted}:
            value = wanted.get(name, 0)
            if self._driven.get(name, 0) != value:
                port = f"{self._name}__{name}"
                bits = pack(self._bench.ports[port], value) if value else 0
                getattr(self._bench.dut, port).value = bits
        self.inputs = self._driven = wanted

    def sample(self, cycle: int) -> None:
        """Record the outputs of the control in this cycle."""
        self.job_waits = self.jobs.valid_seen
        if self.observe:
            self.observe()
        for name, cycles in (("abort", self.abort_cycles), ("flush", self.flush_cycles)):
            if self._bench.get(f"{self._name}__{name}"):
                cycles.append(cycle)
        if self._bench.get(f"{self._name}__starts"):
            ports = {name: self._bench.ports[f"{self._name}__{name}"] for name in self._told}
            self._starts.append({name: unpack(port, self._bench.get(port["name"])) for name, port in ports.items()})
        if self.abort_cycles and self.abort_cycles[-1] == cycle:
            # Waiting payloads are dropped without a transfer
            self.jobs.monitor.forget()
            self.scales.monitor.forget()

    def _shown(self, sink: Any) -> list[dict[str, int]]:
        port = self._bench.ports[f"{sink.name}__payload"]
        shown = [unpack(port, bits) for bits in sink.received]
        sink.received.clear()
        return shown


class ControlBench(Bench):
    """The control and both :class:`DataPath`; parameters as in :class:`~cdu_verif.simulation.bench.Bench`."""

    def __init__(self, dut: Any, test: str) -> None:
        super().__init__(dut, test)
        for name in (_PREFIX, *(f"{_PREFIX}_{channel}" for channel in ("aw", "w", "b", "ar", "r"))):
            logging.getLogger(f"cocotb.{dut._name}.{name}").setLevel(logging.WARNING)
        self.master = AxiLiteMaster(AxiLiteBus.from_prefix(dut, _PREFIX), dut.clk, **self._reset.axi())
        self.paths = {channel: DataPath(self, channel) for channel in Channel}
        self.quiet_cycles = 0  #: cycles without interrupt

    async def start(self) -> ControlBench:
        """Start the clock, reset, and from then on run every cycle without calls from the test."""
        Clock(self.dut.clk, CLOCK_NS, unit="ns").start()
        await self.reset()
        for path in self.paths.values():
            path.jobs.pattern = path.scales.pattern = iter(lambda: False, True)
        cocotb.start_soon(self._cycles())
        return self

    async def _cycles(self) -> None:
        edge, settled = RisingEdge(self.dut.clk), ReadOnly()
        ends, paths = list(self.sinks.values()), list(self.paths.values())
        while True:
            for end in ends:
                end.drive()
            for path in paths:
                path.drive()
            await settled
            for end in ends:
                end.sample(self.cycle)
            for path in paths:
                path.sample(self.cycle)
            self.quiet_cycles += not self.get("irq")
            if self._reset.is_active():
                for end in ends:
                    end.monitor.forget()
            await edge
            self.cycle += 1

    def stall(self, pattern: str) -> None:
        """Stall every channel of the register port by this pattern, independently of the others."""
        write, read = self.master.write_if, self.master.read_if
        for channel, end in ((write.aw_channel, 0), (write.w_channel, 0), (write.b_channel, 1)):
            channel.set_pause_generator(_pauses(PATTERNS[pattern](self.rng)[end]))
        for channel, end in ((read.ar_channel, 0), (read.r_channel, 1)):
            channel.set_pause_generator(_pauses(PATTERNS[pattern](self.rng)[end]))

    async def idle(self, cycles: int) -> None:
        """Wait for some cycles."""
        for _ in range(cycles):
            await RisingEdge(self.dut.clk)

    async def until(self, done: Callable[[], bool], what: str) -> None:
        """Wait until ``done``; AssertionError if it takes too long."""
        for _ in range(_PATIENCE):
            if done():
                return
            await RisingEdge(self.dut.clk)
        raise AssertionError(f"{what}: not after {_PATIENCE} cycles")

    async def raw_read(self, place: int) -> tuple[int, int]:
        """Return data and response code of a read."""
        answer = await self.master.read(place, REGISTER_BYTES)
        return int.from_bytes(answer.data, "little"), int(answer.resp)

    async def raw_write(self, place: int, value: int, size: int = REGISTER_BYTES) -> int:
        """Return the response code of a write of the first ``size`` bytes of a register."""
        answer = await self.master.write(place, value.to_bytes(REGISTER_BYTES, "little")[:size])
        return int(answer.resp)

    async def value(self, name: str, channel: Channel | None = None, index: int = 0) -> int:
        """Return a register; AssertionError if the read is refused."""
        value, response = await self.raw_read(address(name, channel, index))
        assert not response, f"a read of {name} was answered with {response}"
        return value

    async def read(self, name: str, channel: Channel | None = None) -> dict[str, int]:
        """Return the fields of a register."""
        return register(name).unpack(await self.value(name, channel))

    async def write(self, name: str, channel: Channel | None = None, index: int = 0, **fields: int) -> None:
        """Write a register, zeros to the fields that are not given; AssertionError if the write is refused."""
        response = await self.raw_write(address(name, channel, index), register(name).pack(**fields))
        assert not response, f"a write to {name} was answered with {response}"

    async def take_errors(self, channel: Channel) -> set[str]:
        """Return the names of the sticky errors, and clear them with their interrupt."""
        await self.write("INTERRUPT_STATUS", channel, job_done=1, error=1)
        flags = {name for name, bit in (await self.read("ERRORS", channel)).items() if bit}
        await self.write("ERRORS", channel, **dict.fromkeys(flags, 1))
        return flags

    async def command(self, channel: Channel, *names: str) -> None:
        """Write commands to CONTROL."""
        await self.write("CONTROL", channel, **dict.fromkeys(names, 1))


def _pauses(pattern: Pattern) -> Any:
    return (not willing for willing in pattern)
