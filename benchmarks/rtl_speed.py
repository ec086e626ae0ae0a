"""Speed of the compiled RTL (backend ``rtl``) beside the simulation by cocotb and the golden model, in one run.

    python benchmarks/rtl_speed.py

The same tensors go through all of them, by the same codecs and the same driver; every result of the RTL is compared with the
golden model's, outside of the measured time. Prints a markdown table: values per second of compressing and decompressing one
after the other, the best of several runs (cocotb: one run), and ratios. cocotb gets a smaller tensor, which takes it long
enough; its values per second do not depend on that. Both kinds of seconds are counted: those that passed, and those that the
process used, which say more when the machine is busy with other things (its load is given below the table).
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from actcodec.codecs import Backend, Compressed, TorchBackend, codec
from cdu.delivery import generator
from cdu_spec.config import CduConfig
from cdu_spec.config_files import named_config
from cdu_tools.files import write_whole
from cdu_tools.report import table_row
from cdu_verif.backends.compiled.backend import RtlBackend
from cdu_verif.benches import speed
from cdu_verif.simulation.bench import LEVEL, MANIFEST, RECORDS
from cdu_verif.simulation.simulators import Simulation
from torch import Tensor

CODECS = ("jpeg-act", "sfpr+zvc", "sfpr", "brc", "bypass")


def activations(batch: int) -> Tensor:
    """A tensor (batch, 32, 32, 32) like an activation after batch normalisation: smooth maps with noise."""
    random = torch.Generator().manual_seed(0)
    coarse = torch.randn(batch, 32, 8, 8, generator=random)
    maps = torch.nn.functional.interpolate(coarse, size=32, mode="bilinear", align_corners=False)
    return maps + 0.1 * torch.randn(maps.shape, generator=random)


@dataclass(frozen=True)
class Seconds:
    """Seconds that passed, and seconds of processor time that the process used in all its threads."""

    wall: float
    processor: float

    @classmethod
    def of(cls, action: Callable[[], object], runs: int) -> Seconds:
        """The shortest of some runs."""
        times = []
        for _ in range(runs):
            begin, used = time.perf_counter(), time.process_time()
            action()
            times.append((time.perf_counter() - begin, time.process_time() - used))
        return cls(*map(min, zip(*times, strict=True)))

    def __add__(self, other: Seconds) -> Seconds:
        return Seconds(self.wall + other.wall, self.processor + other.processor)


def measured(backend: Backend, name: str, x: Tensor, runs: int) -> Seconds:
    """Time of compressing and decompressing a tensor. AssertionError when the result is not the golden model's."""
    golden, through = codec(name), codec(name, backend=backend)
    packed, expected = through.compress(x), golden.compress(x)
    assert isinstance(packed, Compressed)
    assert isinstance(expected, Compressed)
    assert packed.to_bytes() == expected.to_bytes(), f"{name}: the payload is not the golden model's"
    assert torch.equal(through.decompress(packed), golden.decompress(packed)), f"{name}: the tensor is not the golden model's"
    return Seconds.of(lambda: through.compress(x), runs) + Seconds.of(lambda: through.decompress(packed), runs)


@dataclass(frozen=True)
class Rates:
    """Values per second, by either kind of seconds."""

    wall: float
    processor: float

    @classmethod
    def of(cls, values: int, seconds: Seconds) -> Rates:
        """The rates at which so many values take so long."""
        return cls(values / seconds.wall, values / seconds.processor)


def by_cocotb(config: CduConfig, names: Sequence[str], x: Tensor, folder: Path) -> dict[str, Seconds]:
    """Time of every codec in the simulation by cocotb."""
    generated = generator.generate(config)
    generated.write(folder)
    torch.save([(name, x) for name in names], folder / "tensors.pt")
    simulation = Simulation(folder / f"{generated.name}.v", generated.top, folder, "verilator")
    print(f"building {config.name} for cocotb ...", file=sys.stderr, flush=True)
    simulation.build()
    records = folder / "records.jsonl"
    variables = {MANIFEST: str(folder / f"{generated.name}.json"), LEVEL: "quick", RECORDS: str(records)}
    variables[speed.TENSORS] = str(folder / "tensors.pt")
    print(f"simulating {config.name} with cocotb ...", file=sys.stderr, flush=True)
    simulation.run([speed.__name__], variables)
    assert records.is_file(), f"the simulation failed: {(folder / 'run.log').read_text()[-2000:]}"
    rows = json.loads(records.read_text())["measurements"]
    return {row["codec"]: Seconds(row["seconds"], row["processor_seconds"]) for row in rows}


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--config", nargs="+", default=["tiny"], help="named configurations or .toml files")
    parser.add_argument("--codec", nargs="+", default=list(CODECS))
    parser.add_argument("--runs", type=int, default=3, help="runs per measurement; the best counts")
    parser.add_argument("--batch", type=int, default=16, help="images of 32 x 32 x 32 values")
    parser.add_argument("--cocotb-batch", type=int, default=4, help="images that cocotb gets")
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    x = activations(arguments.batch)
    few = x[: arguments.cocotb_batch]
    print("Thousand values per second, compressed and decompressed.\n")
    columns = ("configuration", "codec", "cocotb", "rtl", "rtl, 2 threads", "golden model")
    ratios = ("rtl / cocotb, processor time", "rtl / cocotb", "rtl, 2 threads / cocotb")
    print(table_row((*columns, *ratios)))
    print("|---|---|---|---|---|---|---|---|---|")
    figures: list[dict[str, Any]] = []
    for name in arguments.config:
        config = named_config(name)
        with tempfile.TemporaryDirectory(prefix="cdu-speed-") as folder:
            slow = by_cocotb(config, arguments.codec, few, Path(folder).resolve())
        backends = {"rtl": RtlBackend(config, threads=1), "rtl_2": RtlBackend(config, threads=2), "golden": TorchBackend()}
        for chosen in arguments.codec:
            times = {label: measured(backend, chosen, x, arguments.runs) for label, backend in backends.items()}
            rates = {label: Rates.of(x.numel(), seconds) for label, seconds in times.items()}
            rates["cocotb"] = Rates.of(few.numel(), slow[chosen])
            figures.append({"config": name, "codec": chosen, **{label: asdict(rate) for label, rate in rates.items()}})
            cells = [f"{rates[label].wall / 1e3:.1f}" for label in ("cocotb", "rtl", "rtl_2", "golden")]
            cells += [f"{rates['rtl'].processor / rates['cocotb'].processor:.0f}"]
            cells += [f"{rates[label].wall / rates['cocotb'].wall:.0f}" for label in ("rtl", "rtl_2")]
            print(table_row([config.name, chosen, *cells]), flush=True)
    load = os.getloadavg()[0]
    print(f"\n- {os.cpu_count()} processors; on average {load:.1f} processes wanted one in the last minute, this one included.")
    if arguments.json:
        write_whole(arguments.json, json.dumps({"processors": os.cpu_count(), "load": load, "rows": figures}, indent=2) + "\n")


if __name__ == "__main__":
    main()
