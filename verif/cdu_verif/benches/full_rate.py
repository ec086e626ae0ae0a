"""A component with one stream in and one out, ``i`` and ``o``, in Amaranth's simulator, with nothing that waits."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from typing import Any

from amaranth.hdl import Value
from amaranth.sim import Simulator

#: Cycles without a transfer after which nothing more is expected.
_QUIET = 100


def play(component: Any, words: Iterable[int], settings: Mapping[str, Any] | None = None) -> tuple[list[int], int]:
    """The payloads that come out for ``words``, and the cycles from the first transfer to the last.

    ``settings`` are constants of ports that are no streams. AssertionError when a payload that is offered is not taken.
    """
    received: list[int] = []
    moves: list[int] = []
    queue = deque(words)

    async def bench(ctx: Any) -> None:
        cycle = still = 0
        ctx.set(component.o.ready, 1)
        for name, value in (settings or {}).items():
            ctx.set(getattr(component, name), value)
        while still < _QUIET:
            ctx.set(component.i.valid, bool(queue))
            if queue:
                ctx.set(Value.cast(component.i.payload), queue[0])
            enters, leaves = bool(queue) and ctx.get(component.i.ready), ctx.get(component.o.valid)
            if leaves:
                received.append(ctx.get(Value.cast(component.o.payload)))
            if enters:
                queue.popleft()
            if enters or leaves:
                moves.append(cycle)
            still = 0 if enters or leaves else still + 1
            cycle += 1
            await ctx.tick()

    simulator = Simulator(component)
    simulator.add_clock(1e-9)
    simulator.add_testbench(bench)
    simulator.run()
    assert not queue, f"{len(queue)} payloads were not taken"
    return received, moves[-1] - moves[0] + 1
