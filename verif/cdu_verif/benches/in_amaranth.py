"""Cases of a block in Amaranth's own simulator: an answer in seconds, without Verilog, compiler and simulator.

`cdu verify` simulates the delivered Verilog, with all behaviours of the streams; this is for quick checks in between.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

from amaranth.hdl import Value
from amaranth.lib.wiring import Component
from amaranth.sim import Simulator
from cdu.delivery import manifest, verilog
from cdu.delivery.blocks import BLOCKS
from cdu_spec import port_fields
from cdu_spec.config import CduConfig
from cdu_tools.errors import UserError

from cdu_verif import blocks as records
from cdu_verif.cases.case import Case, Cases
from cdu_verif.simulation.handshake import HandshakeMonitor
from cdu_verif.simulation.patterns import PATTERNS

#: Cycles without a transfer after which the block is regarded as hanging.
_PATIENCE = 40
#: Cycles after the last transfer in which no other may come.
_QUIET = 40
#: Divisor of the number of blocks over which the rate is measured, for a steady case here.
_STEADY_PART = 5
_CLOCK_SECONDS = 1e-9


class _Block:
    """A block and its ports, by the names that they have in the delivered Verilog."""

    def __init__(self, name: str, component: Component[Any], event_ports: Sequence[str]) -> None:
        self.name = name
        self.component = component
        self.ports: dict[str, dict[str, Any]] = {port["name"]: port for port in manifest.ports(self.component)}
        self.event_ports = [port for port in event_ports if port in self.ports]
        self.values = {verilog.port_name(path): Value.cast(value) for path, _, value in verilog.ports(self.component)}
        streams = {port["stream"]["name"]: port["stream"]["direction"] for port in self.ports.values() if "stream" in port}
        self.sources = [stream for stream, direction in streams.items() if direction == "input"]
        self.sinks = [stream for stream, direction in streams.items() if direction == "output"]

    def role(self, stream: str, role: str) -> Value:
        """Return payload, valid or ready of a stream."""
        return self.values[f"{stream}__{role}"]


class _Player:
    """Send the inputs of one case and record the outputs."""

    def __init__(self, block: _Block, inputs: Mapping[str, Sequence[int]], pattern: str, rng: Random) -> None:
        self._block, self._rng = block, rng
        self._offers, self._willing = PATTERNS[pattern](rng)
        self.queues = {stream: deque(inputs.get(stream, ())) for stream in block.sources}
        self._offered = dict.fromkeys(block.sources, False)
        self._monitors = {stream: HandshakeMonitor(stream) for stream in block.sinks}
        self.received: dict[str, list[int]] = {stream: [] for stream in block.sinks}
        self.events: Counter[str] = Counter()

    async def cycle(self, ctx: Any) -> None:
        """Run one clock cycle: drive, look, transfer."""
        block = self._block
        for stream, queue in self.queues.items():
            self._offered[stream] = self._offered[stream] or (bool(queue) and next(self._offers))
            payload = block.role(stream, "payload")
            ctx.set(block.role(stream, "valid"), self._offered[stream])
            # A payload that is not offered must be ignored.
            ctx.set(payload, queue[0] if self._offered[stream] else self._rng.getrandbits(len(payload)))
        ready = {stream: next(self._willing) for stream in block.sinks}
        for stream, willing in ready.items():
            ctx.set(block.role(stream, "ready"), willing)
        for stream, queue in self.queues.items():
            if self._offered[stream] and ctx.get(block.role(stream, "ready")):
                queue.popleft()
                self._offered[stream] = False
        for stream, willing in ready.items():
            valid, word = bool(ctx.get(block.role(stream, "valid"))), _unsigned(ctx, block.role(stream, "payload"))
            self._monitors[stream].check(valid, willing, word)
            if valid and willing:
                self.received[stream].append(word)
        for port in block.event_ports:
            seen = port_fields.unpack(block.ports[port], _unsigned(ctx, block.values[port]))
            named = seen if isinstance(seen, dict) else {port: seen}
            self.events.update(name for name, high in named.items() if high)
        await ctx.tick()


def check_block(
    component: Component[Any], name: str, config: CduConfig, *, blocks: int = 6, steady: bool = True, seed: int = 1
) -> None:
    """Hold a component to the cases of a block: results, rules of its streams, and rate.

    Random and steady cases are played in Amaranth's simulator, at full rate and with coins tossed for every transfer, each from
    reset.

    Parameters
    ----------
    component
        An Amaranth component with the ports of the block, of any latency; it must not be elaborated yet.
    name, config
        The block, of ``cdu list --all``, and the configuration whose golden values are expected.
    blocks
        Blocks of 64 values of a random case.
    steady
        Whether to play steady cases, too; a few blocks have so many that they take minutes.
    seed
        Seed of the content and of the stalls.

    Raises
    ------
    UserError
        The component has other ports than the block.
    AssertionError
        Outputs differ from the golden values, an event or a flag is wrong, a stream breaks a rule, or the component hangs.
    ValueError
        The block has no such cases.
    """
    cases = records.cases(name)
    _check_ports(component, name, config)
    _play(_Block(name, component, cases.event_ports), cases, config, blocks, steady, seed)


def assert_passes(name: str, config: CduConfig, *, blocks: int = 6, steady: bool = True, seed: int = 1) -> None:
    """Hold the block of this repository to its cases, as :func:`check_block` does."""
    cases = records.cases(name)
    _play(_Block(name, BLOCKS[name](config), cases.event_ports), cases, config, blocks, steady, seed)


def _play(block: _Block, cases: Cases, config: CduConfig, blocks: int, steady: bool, seed: int) -> None:
    """Play random cases of a block, and steady ones where they are wanted."""
    rng = Random(f"{block.name} {seed}")
    chosen = [cases.random(config, block.ports, rng, blocks)]
    if steady:
        chosen += cases.steady(config, block.ports, rng, cases.rate_blocks // _STEADY_PART)
    simulation = _Simulation(block, cases)
    for case in chosen:
        for pattern in ("full_rate", "coins"):
            simulation.play(case, pattern, rng)


def _check_ports(component: Component[Any], name: str, config: CduConfig) -> None:
    """Raise UserError if a component has other ports than a block."""
    model: Any = BLOCKS[name](config)
    model._MustUse__silence = True  # only its ports are looked at
    found, needed = ({port["name"]: port for port in manifest.ports(one)} for one in (component, model))
    for port in sorted(found.keys() | needed.keys()):
        if port not in found:
            raise UserError(f"the component has no port {port}: give it all ports of block {name}")
        if port not in needed:
            raise UserError(f"the component has a port {port}, which block {name} has not: leave it out")
        if found[port] != needed[port]:
            raise UserError(
                f"port {port} of the component is not that of block {name}: use its direction, "
                f"its {needed[port]['width']} bits and its fields"
            )


class _Simulation:
    """One simulator of a block for many cases, because making it takes longer than most of them."""

    def __init__(self, block: _Block, cases: Cases) -> None:
        self._block, self._cases = block, cases
        self._simulator = Simulator(block.component)
        self._simulator.add_clock(_CLOCK_SECONDS)
        self._simulator.add_testbench(self._bench)
        self._played = False

    def play(self, case: Case, pattern: str, rng: Random) -> None:
        """Play one case from reset."""
        self._case, self._player = case, _Player(self._block, case.inputs, pattern, rng)
        self._what = f"{self._block.name}, {case.name}, {pattern}"
        if self._played:
            self._simulator.reset()
        self._played = True
        self._simulator.run()
        for stream, received in self._player.received.items():
            got = self._cases.defined(stream, self._block.ports[f"{stream}__payload"], received)
            assert got == case.expected.get(stream, []), f"{self._what}: {stream} differs from the golden model"
        assert self._player.events == Counter(case.events), f"{self._what}: events {dict(self._player.events)}"

    async def _bench(self, ctx: Any) -> None:
        block, case, player = self._block, self._case, self._player
        for port, value in case.settings.items():
            ctx.set(block.values[port], port_fields.pack(block.ports[port], value))
        quiet = cycles = 0
        while quiet < _QUIET:
            came = all(len(player.received[stream]) >= len(words) for stream, words in case.expected.items())
            quiet = quiet + 1 if came and not any(player.queues.values()) else 0
            await player.cycle(ctx)
            cycles += 1
            assert cycles < _PATIENCE * case.transfers + 1000, f"{self._what}: no end"
        for flag, value in case.flags.items():
            assert ctx.get(block.values[flag]) == value, f"{self._what}: {flag} is not {value}"


def _unsigned(ctx: Any, value: Value) -> int:
    return int(ctx.get(value)) & ((1 << len(value)) - 1)
