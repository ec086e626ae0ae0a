"""Test of streams made by hand from docs/reference/bitstream.md, whose payloads the simulated unit decodes."""

from __future__ import annotations

import actcodec
import torch
from cdu_spec import BitstreamError
from cocotb.task import bridge

from cdu_verif.backends.driven_backend import driven_backend
from cdu_verif.benches.array_bench import ArrayBench
from cdu_verif.simulation.bench_test import bench_test
from cdu_verif.stimulus.streams import on_units


@bench_test(ArrayBench)
async def streams(bench: ArrayBench) -> None:
    """Valid streams give the golden model's values, streams that break a rule are refused, and the unit keeps working."""
    torch.set_num_threads(1)
    backend, _ = driven_backend(bench, await bench.open())
    accepted = on_units.accepted(bench.config, every=bench.full)
    refused = on_units.refused(bench.config, every=bench.full)

    @bridge
    def read() -> None:
        for stream in accepted.values():
            actcodec.from_bytes(stream).decompress(backend)
        for label, (_, stream) in refused.items():
            try:
                actcodec.from_bytes(stream).decompress(backend)
            except BitstreamError:
                continue
            raise AssertionError(f"{label}: the stream was decoded")
        for stream in list(accepted.values())[:3]:
            actcodec.from_bytes(stream).decompress(backend)

    await read()
    bench.cases = len(accepted) + len(refused)
    bench.figures |= {"accepted": len(accepted), "refused": len(refused), "decoded_by_the_unit": backend.decompressed}
