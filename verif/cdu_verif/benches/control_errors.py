"""Tests of the control alone: errors, interrupts, watchdog and abort."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import cocotb
from cdu_spec.channel_block import ERROR_FLAGS
from cdu_spec.register_types import JOB_QUEUE, SCALE_QUEUE, Channel

from cdu_verif.benches.control_bench import ControlBench, DataPath
from cdu_verif.benches.control_jobs import EVENTS, PORT_EVENTS, descriptor_of, happen, random_job, start
from cdu_verif.simulation.bench_test import bench_test
from cdu_verif.simulation.patterns import always


@bench_test(ControlBench)
async def errors_and_interrupts(bench: ControlBench) -> None:
    """Every error sets its own sticky bit, and interrupts when enabled at both places; writing 1 clears just that bit."""
    names = [name for name, _ in ERROR_FLAGS]
    reported = [name for name in names if name in (*EVENTS, *PORT_EVENTS)]
    for channel in Channel:
        path = bench.paths[channel]

        async def interrupts(channel: Channel = channel) -> bool:
            await bench.idle(6)
            high = bool(bench.get("irq"))
            pending = await bench.read("INTERRUPTS")
            assert pending == {"compress": 0, "decompress": 0, "bus": 0, channel.value: int(high)}
            return high

        for name in reported:
            happen(path, {name})
            assert not await interrupts()
            assert {flag for flag, bit in (await bench.read("ERRORS", channel)).items() if bit} == {name}
            assert await bench.read("INTERRUPT_STATUS", channel) == {"job_done": 0, "error": 1}
            await bench.write("ERRORS", channel, **{other: 1 for other in names if other != name})
            assert {flag for flag, bit in (await bench.read("ERRORS", channel)).items() if bit} == {name}
            assert await bench.take_errors(channel) == {name}
            assert await bench.value("ERRORS", channel) == 0
        await bench.write("INTERRUPT_ENABLE", channel, error=1)
        for _ in range(20):
            enabled = {name for name in names if bench.rng.random() < 0.5}
            await bench.write("ERROR_ENABLE", channel, **dict.fromkeys(enabled, 1))
            flags = {name for name in reported if bench.rng.random() < 0.4}
            happen(path, flags)
            assert await interrupts() == bool(flags & enabled)
            assert await bench.take_errors(channel) == flags
            assert not await interrupts()
            bench.cases += 1
        await bench.write("ERROR_ENABLE", channel, **dict.fromkeys(names, 1))
        await _events_while_clearing(bench, channel)

        # The end of a job
        path.jobs.pattern = always()
        for enable in (0, 1):
            await bench.write("INTERRUPT_ENABLE", channel, job_done=enable)
            assert not await start(bench, channel, random_job(bench, bench.config.built_modes[0]))
            assert not await interrupts()
            path.pulse(job_done=1)
            assert await interrupts() == bool(enable)
            assert await bench.read("INTERRUPT_STATUS", channel) == {"job_done": 1, "error": 0}
            await bench.write("INTERRUPT_STATUS", channel, job_done=1)
            assert not await interrupts()
        await bench.write("INTERRUPT_ENABLE", channel)


async def _events_while_clearing(bench: ControlBench, channel: Channel) -> None:
    """An error in the very cycle in which its interrupt is cleared keeps the interrupt high all the time."""
    unbroken = 0
    for delay in range(20):
        happen(bench.paths[channel], {"keep"})
        await bench.idle(6)
        quiet = bench.quiet_cycles
        clearing = cocotb.start_soon(bench.write("INTERRUPT_STATUS", channel, error=1))
        await bench.idle(delay)
        happen(bench.paths[channel], {"keep"})
        await clearing
        await bench.idle(6)
        unbroken += bench.quiet_cycles == quiet
        await bench.take_errors(channel)
    assert unbroken == 1, f"{unbroken} of 20 cycles are that of the clearing"


@bench_test(ControlBench)
async def watchdog(bench: ControlBench) -> None:
    """Jobs that do not move are aborted after as many cycles as WATCHDOG says; any transfer, and progress, begins anew."""
    moves: list[dict[str, int]] = [
        {"input_valid": 1, "input_ready": 1},
        {"output_valid": 1, "output_ready": 1},
        {"progress": 1},
    ]
    for channel in Channel:
        path = bench.paths[channel]
        path.jobs.pattern = always()
        for limit in (20, 75):
            await bench.write("WATCHDOG", channel, value=limit)
            for still in ({}, {"input_valid": 1}, {"output_ready": 1}, {"input_ready": 1, "output_valid": 1}):
                path.traffic = partial(dict, still)
                await bench.idle(3 * limit)
                assert not path.abort_cycles, "a timeout without a job"
                path.traffic = lambda: {"progress": 1}
                assert not await start(bench, channel, random_job(bench, bench.config.built_modes[0]))
                path.traffic = partial(dict, still)
                # Transfers, each just in time
                for move in moves:
                    path.pulse(**move)
                    last = bench.cycle
                    await bench.idle(limit - 2)
                    assert not path.abort_cycles, f"a timeout {limit - 2} cycles after {move}"
                path.pulse(**moves[0])
                last = bench.cycle
                await bench.until(_aborted(path), "the watchdog bites")
                assert limit <= path.abort_cycles[0] - last <= limit + 8, f"{path.abort_cycles[0] - last} cycles, not {limit}"
                await bench.idle(3 * limit)
                assert len(path.abort_cycles) == 1
                assert not path.flush_cycles
                assert await bench.take_errors(channel) == {"timeout"}
                status = await bench.read("STATUS", channel)
                assert (status["jobs"], status["queue_space"]) == (0, JOB_QUEUE)
                path.abort_cycles.clear()
                path.shown_jobs()
                bench.cases += 1
        await bench.write("WATCHDOG", channel, value=0)
        assert not await start(bench, channel, random_job(bench, bench.config.built_modes[0]))
        await bench.idle(400)
        assert not path.abort_cycles, "a timeout with the watchdog off"
        path.traffic = None
        path.pulse(job_done=1)


def _aborted(path: DataPath) -> Callable[[], bool]:
    return lambda: bool(path.abort_cycles)


@bench_test(ControlBench)
async def abort(bench: ControlBench) -> None:
    """After an abort there are no jobs and no scales, in either the queue or the data path, and the next job works."""
    for channel in Channel:
        path = bench.paths[channel]
        for started in (0, 1, 2, 4):
            for flush in (False, True):
                path.jobs.pattern = always()
                for number in range(started):
                    if started - number == JOB_QUEUE:
                        path.jobs.pattern = iter(lambda: False, True)
                    assert not await start(bench, channel, random_job(bench))
                for _ in range(SCALE_QUEUE):
                    await bench.write("SCALE", channel, value=1)
                path.shown_jobs()
                await bench.command(channel, "abort", *(["flush"] if flush else []))
                await bench.idle(3)
                assert len(path.abort_cycles) == 1
                assert path.flush_cycles == (path.abort_cycles if flush else [])
                path.abort_cycles.clear()
                path.flush_cycles.clear()
                assert await bench.take_errors(channel) == ({"aborted"} if started else set())
                status = await bench.read("STATUS", channel)
                expected = {"busy": 0, "jobs": 0, "queue_space": JOB_QUEUE, "scale_space": SCALE_QUEUE, "bank_busy": 0}
                assert status == expected | {"flushing": 0, "draining": 0}
                path.jobs.pattern = path.scales.pattern = always()
                await bench.idle(5)
                assert not path.shown_jobs(), "an aborted job came"
                assert not path.shown_scales(), "a scale survived"
                job = random_job(bench)
                assert not await start(bench, channel, job)
                await bench.idle(3)
                assert path.shown_jobs() == [descriptor_of(channel, job)]
                path.pulse(job_done=1)
                await bench.idle(2)
                assert (await bench.read("STATUS", channel))["busy"] == 0
                path.scales.pattern = iter(lambda: False, True)
                await bench.take_errors(channel)
                bench.cases += 1
        # A flush alone does nothing; its state is shown
        await bench.command(channel, "flush")
        await bench.idle(5)
        assert not path.abort_cycles
        assert not path.flush_cycles
        for state in ("flushing", "draining"):
            path.traffic = partial(dict, {state: 1})
            await bench.idle(2)
            assert (await bench.read("STATUS", channel))[state] == 1
            path.traffic = None
