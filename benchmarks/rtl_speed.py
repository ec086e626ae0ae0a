"""Speed of the compiled RTL (backend ``rtl``) beside the simulation by cocotb and the golden model, in one run.

    python benchmarks/rtl_speed.py

The same tensors go through all of them, by the same codecs and the same driver; every result of the RTL is compared with the
golden model's, outside of the measured time. Prints a markdown table: values per second of compressing and decompressing one
after the other, the best of several runs (cocotb: one run), and ratios. cocotb gets a smaller tensor, which takes it long
enough; its values per second do not depend on that. With ``--processor-time`` seconds are those that the process used, for a
machine that is busy with other things; 2 threads then gain nothing.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import torch
from actcodec.codecs import Backend, Compressed, TorchBackend, codec
from cdu import generator
from cdu_spec.config import CduConfig, named_config
from cdu_spec.files import write_whole
from cdu_verif.bench import LEVEL, MANIFEST, RECORDS
from cdu_verif.benches import speed
from cdu_verif.compiled.backend import RtlBackend
from cdu_verif.simulators import Simulation
from torch import Tensor

CODECS = ("jpeg-act", "sfpr+zvc", "sfpr", "brc", "bypass")


def activations(batch: int) -> Tensor:
    """A tensor (batch, 32, 32, 32) like an activation after batch normalisation: smooth maps with noise."""
    random = torch.Generator().manual_seed(0)
    coarse = torch.randn(batch, 32, 8, 8, generator=random)
    maps = torch.nn.functional.interpolate(coarse, size=32, mode="bilinear", align_corners=False)
    return maps + 0.1 * torch.randn(maps.shape, generator=random)


Clock = Callable[[], float]


def best(action: Callable[[], object], runs: int, clock: Clock) -> float:
    """Seconds of the fastest of some runs."""
    times = []
    for _ in range(runs):
        begin = clock()
        action()
        times.append(clock() - begin)
    return min(times)


def measured(backend: Backend, name: str, x: Tensor, runs: int, clock: Clock) -> float:
    """Seconds of compressing and decompressing a tensor. AssertionError when the result is not the golden model's."""
    golden, through = codec(name), codec(name, backend=backend)
    packed, expected = through.compress(x), golden.compress(x)
    assert isinstance(packed, Compressed)
    assert isinstance(expected, Compressed)
    assert packed.to_bytes() == expected.to_bytes(), f"{name}: the payload is not the golden model's"
    assert torch.equal(through.decompress(packed), golden.decompress(packed)), f"{name}: the tensor is not the golden model's"
    return best(lambda: through.compress(x), runs, clock) + best(lambda: through.decompress(packed), runs, clock)


def by_cocotb(config: CduConfig, names: Sequence[str], x: Tensor, folder: Path, seconds: str) -> dict[str, float]:
    """Values per second of every codec in the simulation by cocotb."""
    generated = generator.generate(config)
    generated.write(folder)
    torch.save([(name, x) for name in names], folder / "tensors.pt")
    simulation = Simulation(folder / f"{generated.name}.v", generated.name, folder, "verilator")
    print(f"building {config.name} for cocotb ...", file=sys.stderr, flush=True)
    simulation.build()
    records = folder / "records.jsonl"
    variables = {MANIFEST: str(folder / f"{generated.name}.json"), LEVEL: "quick", RECORDS: str(records)}
    variables[speed.TENSORS] = str(folder / "tensors.pt")
    print(f"simulating {config.name} with cocotb ...", file=sys.stderr, flush=True)
    simulation.run([speed.__name__], variables)
    assert records.is_file(), f"the simulation failed: {(folder / 'run.log').read_text()[-2000:]}"
    rows = json.loads(records.read_text())["measurements"]
    return {row["codec"]: row["values"] / row[seconds] for row in rows}


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--config", nargs="+", default=["tiny"], help="named configurations or .toml files")
    parser.add_argument("--codec", nargs="+", default=list(CODECS))
    parser.add_argument("--runs", type=int, default=3, help="runs per measurement; the best counts")
    parser.add_argument("--batch", type=int, default=16, help="images of 32 x 32 x 32 values")
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    parser.add_argument("--processor-time", action="store_true", help="count the time that the process used")
    arguments = parser.parse_args()
    clock, seconds = time.perf_counter, "seconds"
    if arguments.processor_time:
        clock, seconds = time.process_time, "processor_seconds"
    torch.set_num_threads(1)
    x = activations(arguments.batch)
    print("Thousand values per second, compressed and decompressed.\n")
    print("| configuration | codec | cocotb | rtl | rtl, 2 threads | golden model | rtl / cocotb | golden / rtl |")
    print("|---|---|---|---|---|---|---|---|")
    figures = []
    for name in arguments.config:
        config = named_config(name)
        with tempfile.TemporaryDirectory(prefix="cdu-speed-") as folder:
            slow = by_cocotb(config, arguments.codec, x[:1], Path(folder).resolve(), seconds)
        one, two = RtlBackend(config, threads=1), RtlBackend(config, threads=2)
        for chosen in arguments.codec:
            rates = {"cocotb": slow[chosen]}
            for label, backend in {"rtl": one, "rtl_2": two, "golden": TorchBackend()}.items():
                rates[label] = x.numel() / measured(backend, chosen, x, arguments.runs, clock)
            figures.append({"config": name, "codec": chosen, **rates})
            cells = [f"{rates[label] / 1e3:.1f}" for label in ("cocotb", "rtl", "rtl_2", "golden")]
            ratios = [f"{rates['rtl'] / rates['cocotb']:.0f}", f"{rates['golden'] / rates['rtl']:.1f}"]
            print("|", " | ".join([config.name, chosen, *cells, *ratios]), "|", flush=True)
    if arguments.json:
        write_whole(arguments.json, json.dumps({"processors": os.cpu_count(), "rows": figures}, indent=2) + "\n")


if __name__ == "__main__":
    main()
