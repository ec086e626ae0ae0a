"""A bare test bench for a delivered unit: cocotb and cocotbext-axi at its ports, no other part of this project.

Generates the Verilog, has the golden model write a job with the expected bytes, builds and runs test_unit.py, which reads
NAME.json and job.json only.   python examples/axi_testbench/run.py --sim icarus -o build/axi_testbench
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import actcodec
import torch
from actcodec.backends.job import beats_in, group_scales
from actcodec.golden import sfpr
from cdu_spec.matrix_view import MatrixView
from cdu_spec.modes import Mode
from cdu_tools import verilator
from cocotb_tools.check_results import get_results
from cocotb_tools.runner import get_runner

NAME, TOP, MODE = "bench", "cdu_bench", Mode.SFPR_ZVC
HERE = Path(__file__).resolve().parent


def generate(folder: Path) -> None:
    """NAME.v and NAME.json, by the command that a user calls."""
    settings = ("--set", f"name={NAME}", "--set", f"modes={MODE.label}")
    subprocess.run([Path(sys.executable).parent / "cdu", "generate", *settings, "-o", folder], check=True)


def job() -> dict[str, object]:
    """Return a job: a tensor, the numbers that a driver programs for it, and the expected outputs; bytes as hex."""
    torch.manual_seed(7)
    x = torch.relu(torch.randn(2, 3, 4, 10))
    packed: Any = actcodec.codec(MODE.label, S=1.125).compress(x)
    view = MatrixView.of(x.shape, MODE)
    channels = x.reshape(x.shape[0], x.shape[1], -1)
    multipliers, reciprocals = sfpr.scales(channels, 1.125, 8)
    return {
        "mode": int(MODE),
        "beats": view.beats,
        "row_beats": view.row_beats,
        "channel_rows": view.channel_rows,
        "multipliers": group_scales(multipliers, view).numpy().tobytes().hex(),
        "reciprocals": group_scales(reciprocals, view).numpy().tobytes().hex(),
        "values": beats_in(x, view).numpy().tobytes().hex(),
        "payload": packed.payload.numpy().tobytes().hex(),
        "restored": beats_in(actcodec.decompress(packed), view).numpy().tobytes().hex(),
    }


def main() -> None:
    """Run the command line; the exit code is 1 when a test fails."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sim", choices=("icarus", "verilator"), default="icarus")
    parser.add_argument("-o", "--output", type=Path, default=Path("build/axi_testbench"))
    options = parser.parse_args()
    folder = options.output.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    generate(folder)
    (folder / "job.json").write_text(json.dumps(job(), indent=1) + "\n", encoding="utf-8")
    if options.sim == "verilator":
        os.environ.update(verilator.find().variables)  # the installed package sets its paths
    runner = get_runner(options.sim)
    runner.build(
        sources=[folder / f"{NAME}.v"],
        hdl_toplevel=TOP,
        build_dir=folder / options.sim,
        build_args=["-Wno-fatal", "-Wno-lint"] if options.sim == "verilator" else [],
        timescale=("1ns", "1ps"),
    )
    results = runner.test(
        hdl_toplevel=TOP,
        test_module="test_unit",
        test_dir=folder,
        results_xml=str(folder / "results.xml"),
        extra_env={
            "PYTHONPATH": str(HERE),
            "CDU_MANIFEST": str(folder / f"{NAME}.json"),
            "CDU_JOB": str(folder / "job.json"),
        },
    )
    tests, failures = get_results(results)
    print(f"{tests} tests, {failures} failures: {results}")
    sys.exit(failures > 0 or tests == 0)


if __name__ == "__main__":
    sys.path.insert(0, str(HERE))  # the simulator's Python gets this search path
    main()
