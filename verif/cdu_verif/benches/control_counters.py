"""Test of the control alone: its counters, to the cycle."""

from __future__ import annotations

from typing import Any

from cdu_spec.geometry import LANES
from cdu_spec.register_types import Channel
from cdu_spec.registers import channel_registers

from cdu_verif.benches.control_bench import ControlBench, DataPath
from cdu_verif.benches.control_jobs import random_job, start, taken
from cdu_verif.simulation.bench_test import bench_test
from cdu_verif.simulation.patterns import coin


class _Traffic:
    """Random behaviour of a channel's ports, and the expected values of its counters."""

    def __init__(self, bench: ControlBench, path: DataPath) -> None:
        self._bench, self._path = bench, path
        self.expected = dict.fromkeys(("CYCLES", "VALUES", "BYTES", "INPUT_STALL", "INPUT_IDLE", "OUTPUT_STALL"), 0)
        self._busy = False
        self._ends = False

    def end(self) -> None:
        """Make the next cycle the last one of the job."""
        self._ends = True

    def __call__(self) -> dict[str, Any]:
        rng, config = self._bench.rng, self._bench.config
        names = ("input_valid", "input_ready", "output_valid", "output_ready")
        inputs: dict[str, Any] = {name: int(rng.random() < 0.6) for name in names}
        inputs["values"] = rng.randint(0, LANES * config.port_beats) if rng.random() < 0.7 else 0
        inputs["packed"] = rng.randint(0, config.packed_bytes) if rng.random() < 0.7 else 0
        inputs["job_done"] = int(self._ends)
        return inputs

    def sample(self) -> None:
        """Count one settled cycle. The job is at the port in the first busy cycle and ends in the last one."""
        inputs, counts = self._path.inputs, self.expected
        if "values" not in inputs:
            return  # the first cycle
        self._busy |= self._path.job_waits
        counts["VALUES"] += inputs["values"]
        counts["BYTES"] += inputs["packed"]
        if self._busy:
            counts["CYCLES"] += 1
            counts["INPUT_STALL"] += inputs["input_valid"] & ~inputs["input_ready"] & 1
            counts["INPUT_IDLE"] += inputs["input_ready"] & ~inputs["input_valid"] & 1
            counts["OUTPUT_STALL"] += inputs["output_valid"] & ~inputs["output_ready"] & 1
        if inputs["job_done"]:
            self._busy = self._ends = False


@bench_test(ControlBench)
async def counters(bench: ControlBench) -> None:
    """All counters under random traffic, to the cycle; between jobs they hold where they should, and they clear."""
    for channel in Channel:
        path = bench.paths[channel]
        path.jobs.pattern = coin(bench.rng, 0.3)
        for _ in range(6):
            traffic = _Traffic(bench, path)
            await bench.command(channel, "clear_counters")
            path.traffic = traffic
            path.observe = traffic.sample
            await bench.idle(bench.rng.randint(5, 60))
            count = bench.rng.randint(1, 3)
            for _ in range(count):
                assert not await start(bench, channel, random_job(bench))
                await bench.idle(bench.rng.randint(0, 300))
                await bench.until(taken(path), "the job is taken")
                path.shown_jobs()
                traffic.end()
                await bench.idle(bench.rng.randint(2, 20))
            path.traffic = path.observe = None
            await bench.idle(4)
            for name, counted in traffic.expected.items():
                expected = counted if bench.config.counter_bits else 0
                wide = name in ("CYCLES", "VALUES", "BYTES")
                found = await bench.value(f"{name}_LOW" if wide else name, channel)
                assert found == expected, f"{name} is {found}, not {expected}"
                assert not wide or await bench.value(f"{name}_HIGH", channel) == 0
            assert await bench.value("JOBS_DONE", channel) == count
            bench.cases += 1
        await bench.command(channel, "clear_counters")
        for entry in channel_registers(channel, bench.config):
            if entry.description.startswith("Counter"):
                assert await bench.value(entry.name, channel) == 0
