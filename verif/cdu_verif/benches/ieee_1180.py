"""IEEE Std 1180-1990 in the hardware of the inverse DCT."""

from __future__ import annotations

from cdu_verif.simulation.bench import Bench, simulated_config
from cdu_verif.simulation.bench_test import bench_test
from cdu_verif.simulation.ports import pack_rows, unpack_rows
from cdu_verif.stimulus import ieee1180


@bench_test(Bench, skip=not ieee1180.applies(simulated_config()))
async def ieee_1180(bench: Bench) -> None:
    """The standard in the hardware built for 9-bit samples: all blocks on full, a part on quick.

    The limits of the mean errors hold for 10 000 blocks; a part is held to the other limits.
    """
    blocks = ieee1180.BLOCKS_PER_RUN if bench.full else 150
    sink, source = bench.sinks["o"], bench.sources["i"]
    for run in ieee1180.runs():
        coefficients, reference = run.stimulus(blocks)
        source.send(pack_rows(bench.ports["i__payload"], {"": coefficients.transpose(0, 2, 1).reshape(-1, 8)}))
        sink.received.clear()
        await bench.run(lambda: len(sink.received) == 8 * blocks, 20 * blocks + 1000, "IEEE 1180")
        rows = unpack_rows(bench.ports["o__payload"], sink.received)[""]
        found = ieee1180.AccuracyErrors.of(rows.reshape(-1, 8, 8), reference)
        name = f"{-run.low}..{run.high}{', sign reversed' if run.sign < 0 else ''}"
        bench.figures[name] = (
            f"peak {found.peak:g}, mean square {found.mean_square:.4f} (pixel {found.worst_pixel_mean_square:.4f}), "
            f"mean {found.mean:.5f} (pixel {found.worst_pixel_mean:.4f})"
        )
        assert found.peak <= ieee1180.LIMITS.peak, f"{name}: {found}"
        assert found.mean_square <= ieee1180.LIMITS.mean_square, f"{name}: {found}"
        assert not bench.full or found.passed, f"{name}: {found}"
        bench.cases += blocks
