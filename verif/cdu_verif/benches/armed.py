"""Benches of a whole unit whose errors drive the interrupt line, with checks of the errors and of the next job."""

from __future__ import annotations

from collections.abc import Sequence

from actcodec.backends.job import Job
from actcodec.backends.torch_backend import TorchBackend
from cdu_spec.modes import Mode
from cdu_spec.register_types import Channel
from torch import Tensor

from cdu_verif.benches.array_bench import ArrayBench
from cdu_verif.content.tensors import TABLES, Exchange, exchange
from cdu_verif.simulation import cover_points


class ArmedBench(ArrayBench):
    """A bench in which errors, and no other events, drive the interrupt line."""

    async def start(self) -> ArmedBench:
        """Start the clock, reset the unit and enable the interrupts of errors."""
        await super().start()
        for channel in Channel:
            await self.write("INTERRUPT_ENABLE", channel, error=1)
        return self


def small_item(bench: ArrayBench, mode: Mode | None = None, width: int = 24) -> Exchange:
    """Return a small job, by default of any mode."""
    chosen = mode or bench.rng.choice(bench.config.built_modes)
    return exchange(bench.config, bench.rng, (2, 2, 8, width), chosen, bench.rng.choice(("normal", "relu")), TABLES[:1])


async def prepare(bench: ArrayBench, channel: Channel, job: Job, **told: int) -> None:
    """Write the table of a job and start it; ``told`` are further arguments of :meth:`ArrayBench.program`."""
    if job.shifts:
        await bench.write_table(channel, 0, job.shifts)
    await bench.program(channel, job, **told)


async def expect(bench: ArrayBench, channel: Channel, *flags: str, also: tuple[str, ...] = ()) -> None:
    """Check that exactly these errors have come, apart from ``also``, and the line is high; clear it, and run a good job."""
    await bench.idle(4)
    assert bench.get("irq"), f"{channel.value}: no interrupt for {flags}"
    causes = await bench.read("INTERRUPTS")
    assert causes[channel.value], f"{channel.value}: INTERRUPTS is {causes}"
    found = await bench.errors(channel)
    await bench.idle(4)
    assert found - set(also) == set(flags), f"{channel.value}: {sorted(found)} instead of {flags}"
    assert not bench.get("irq"), f"{channel.value}: the interrupt stays after its reasons are cleared"
    for flag in found & set(flags):
        bench.cover("cp_error", cover_points.error(flag, channel))
    bench.cases += 1


async def good(bench: ArrayBench, channel: Channel) -> None:
    """Check that a job of any mode is right and raises no error."""
    await bench.run_job(channel, small_item(bench))
    found = await bench.errors(channel)
    assert not found, f"{channel.value}: a good job raised {sorted(found)}"


async def raised(bench: ArrayBench) -> None:
    """Wait for the interrupt."""
    while not bench.get("irq"):
        await bench.idle(1)


def golden(job: Job, beats: Tensor) -> bytes:
    """Return the payload of a job."""
    return bytes(TorchBackend().compress(job, beats).tolist())


async def write_scales(bench: ArrayBench, channel: Channel, patterns: Sequence[int], offsets: Sequence[int] = ()) -> None:
    """Write scales to the registers."""
    for place, pattern in enumerate(patterns):
        while not (await bench.read("STATUS", channel))["scale_space"]:
            await bench.idle(10)
        if bench.config.has_offsets:
            await bench.write("SCALE_OFFSET", channel, offset=(offsets[place] if len(offsets) else 0) & 0xFFFF)
        await bench.write("SCALE_LAST" if place + 1 == len(patterns) else "SCALE", channel, value=pattern)
