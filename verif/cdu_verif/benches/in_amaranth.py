"""Cases of a block in Amaranth's own simulator: an answer in seconds, without Verilog, compiler and simulator.

`cdu verify` simulates what is delivered, under all behaviours of the streams; this is for the time in between.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

from amaranth.hdl import Value
from amaranth.sim import Simulator
from cdu.delivery import manifest, verilog
from cdu.delivery.blocks import BLOCKS
from cdu_spec.config import CduConfig

from cdu_verif.cases import CASES
from cdu_verif.cases.array_parts import PartCase
from cdu_verif.cases.case import Case
from cdu_verif.cases.parts import PARTS
from cdu_verif.simulation.handshake import HandshakeMonitor
from cdu_verif.simulation.patterns import PATTERNS

#: Cycles that a transfer may take before the block counts as hanging.
_PATIENCE = 40
#: Cycles after the last transfer in which nothing more may come.
_QUIET = 40
#: Blocks of the steady cases of parts; some have jobs of many.
_STEADY_BLOCKS = 48
_CLOCK_SECONDS = 1e-9


class _Block:
    """A block and its ports, by the names that they have in the delivered Verilog."""

    def __init__(self, name: str, config: CduConfig) -> None:
        self.component = BLOCKS[name](config)
        self.ports: dict[str, dict[str, Any]] = {port["name"]: port for port in manifest.ports(self.component)}
        self.values = {verilog.port_name(path): Value.cast(value) for path, _, value in verilog.ports(self.component)}
        streams = {port["stream"]["name"]: port["stream"]["direction"] for port in self.ports.values() if "stream" in port}
        self.sources = [stream for stream, direction in streams.items() if direction == "input"]
        self.sinks = [stream for stream, direction in streams.items() if direction == "output"]

    def role(self, stream: str, role: str) -> Value:
        """Payload, valid or ready of a stream."""
        return self.values[f"{stream}__{role}"]


class _Player:
    """Sends the inputs of one case and keeps what comes out."""

    def __init__(self, block: _Block, inputs: Mapping[str, Sequence[int]], pattern: str, rng: Random) -> None:
        self._block, self._rng = block, rng
        self._offers, self._willing = PATTERNS[pattern](rng)
        self.queues = {stream: deque(inputs.get(stream, ())) for stream in block.sources}
        self._offered = dict.fromkeys(block.sources, False)
        self._monitors = {stream: HandshakeMonitor(stream) for stream in block.sinks}
        self.received: dict[str, list[int]] = {stream: [] for stream in block.sinks}
        self.events: Counter[str] = Counter()

    async def cycle(self, ctx: Any) -> None:
        """One clock cycle: drive, look, transfer."""
        block = self._block
        for stream, queue in self.queues.items():
            self._offered[stream] = self._offered[stream] or (bool(queue) and next(self._offers))
            payload = block.role(stream, "payload")
            ctx.set(block.role(stream, "valid"), self._offered[stream])
            # Nobody may look at a payload that is not offered.
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
        if "events" in block.ports:
            seen = manifest.unpack(block.ports["events"], _unsigned(ctx, block.values["events"]))
            self.events.update(name for name, value in seen.items() if value)
        await ctx.tick()


def assert_passes(name: str, config: CduConfig, *, blocks: int = 6, seed: int = 1) -> None:
    """Random and steady cases of a block, at full rate and with coins tossed for every transfer, from reset each.

    AssertionError where what comes out differs from the golden values, an event or a flag is not as it should be, a stream
    breaks a rule, or nothing ends. ValueError for blocks without such cases.
    """
    if name not in CASES and name not in PARTS:
        raise ValueError(f"{name} has no cases of its own streams: use {', '.join([*CASES, *PARTS])}")
    block, rng = _Block(name, config), Random(f"{name} {seed}")
    for case in _cases(name, config, block, rng, blocks):
        for pattern in ("full_rate", "coins"):
            _play(block, name, case, pattern, rng)


def _cases(name: str, config: CduConfig, block: _Block, rng: Random, blocks: int) -> list[Case | PartCase]:
    if name in CASES:
        simple = CASES[name]
        return [simple.random(config, block.ports, rng, blocks), *simple.steady(config, block.ports, rng, blocks)]
    part = PARTS[name]
    built = part.built(config)
    jobs = {"random": part.random(built, rng, blocks), **part.steady(built, rng, _STEADY_BLOCKS)}
    return [part.case(built, block.ports, rng, label, found, 0) for label, found in jobs.items()]


def _play(block: _Block, name: str, case: Case | PartCase, pattern: str, rng: Random) -> None:
    """One case from reset."""
    simple = isinstance(case, Case)
    inputs = {"i": case.inputs} if isinstance(case, Case) else case.inputs
    expected = {"o": case.expected} if isinstance(case, Case) else case.expected
    player = _Player(block, inputs, pattern, rng)
    limit = _PATIENCE * (sum(map(len, inputs.values())) + sum(map(len, expected.values()))) + 1000

    async def bench(ctx: Any) -> None:
        for port, value in (case.settings if isinstance(case, Case) else {}).items():
            ctx.set(block.values[port], manifest.pack(block.ports[port], value))
        quiet = cycles = 0
        while quiet < _QUIET:
            came = all(len(player.received[stream]) >= len(words) for stream, words in expected.items())
            quiet = quiet + 1 if came and not any(player.queues.values()) else 0
            await player.cycle(ctx)
            cycles += 1
            assert cycles < limit, f"{name}, {case.name}, {pattern}: no end"
        for flag, value in (case.flags if isinstance(case, Case) else {}).items():
            assert ctx.get(block.values[flag]) == value, f"{name}, {case.name}, {pattern}: {flag} is not {value}"

    simulator = Simulator(block.component)
    simulator.add_clock(_CLOCK_SECONDS)
    simulator.add_testbench(bench)
    simulator.run()
    for stream, received in player.received.items():
        wanted = list(expected.get(stream, ()))
        got = received if simple else list(PARTS[name].defined(stream, block.ports[f"{stream}__payload"], received))
        assert got == wanted, f"{name}, {case.name}, {pattern}: {stream} differs from the golden model"
    if isinstance(case, PartCase):
        assert player.events == Counter(case.events), f"{name}, {case.name}, {pattern}: events {dict(player.events)}"


def _unsigned(ctx: Any, value: Value) -> int:
    return int(ctx.get(value)) & ((1 << len(value)) - 1)
