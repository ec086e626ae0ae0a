"""Area, clock and rate of the coders of coefficients as blocks, on the same recorded activations: ZVC, GMC, JPEG-BASE's.

    python benchmarks/coder_blocks.py build/cifar.npz

The file is one that `cdu dqt --record` wrote. Prints the markdown tables of docs/methods/jpeg_base.md. All coders get the
coefficients of jpeg-act, so many blocks from the middle of each tensor, one behind the other, in a simulation in which nothing
waits. Values per cycle are 64 of each block, over the cycles from the first transfer to the last. The encoder of whole scans
gets the samples of these coefficients. A path through several blocks has the area of all of them, and the critical
path and the rate of the slowest one.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from actcodec.codecs import codec
from actcodec.golden import zvc
from actcodec.golden.zigzag import to_zigzag
from actcodec.study.activations import load_activations
from cdu.delivery import generator, manifest
from cdu.delivery.blocks import BLOCKS
from cdu_spec import dqt, named_config
from cdu_spec.config import CduConfig
from cdu_spec.geometry import BLOCK_SIDE, BLOCK_VALUES
from cdu_spec.jpeg import ZIGZAG
from cdu_spec.modes import Mode
from cdu_spec.rounding import Rounding
from cdu_synth.area import flow
from cdu_synth.library import pdk
from cdu_tools.report import table_row
from cdu_verif.benches.full_rate import play
from cdu_verif.cases import block_streams, entropy_coder, gmc, jpeg_scans
from cdu_verif.simulation.ports import Ports
from torch import Tensor

_TABLES = ("optL", "uniform-16")
_QUANTIZERS = ("shift_quantizer", "inverse_shift_quantizer", "div_quantizer", "inverse_div_quantizer")
_TRANSFORMS = ("dct", "idct")
#: The blocks between samples and bytes, by path.
_PATHS = (
    ("dct", "shift_quantizer", "gmc_encoder"),
    ("jpeg_encoder",),
    ("gmc_decoder", "inverse_shift_quantizer", "idct"),
    ("jpeg_decoder",),
)


def _zvc(ports: Ports, blocks: Tensor) -> tuple[dict[str, list[int]], int]:
    job = block_streams.job(blocks.reshape(-1, BLOCK_SIDE), Mode.SFPR_ZVC)
    return _of_job(ports, job)


def _gmc(ports: Ports, blocks: Tensor) -> tuple[dict[str, list[int]], int]:
    return _of_job(ports, gmc.job(blocks))


def _of_job(ports: Ports, job: list[block_streams.StreamBlock]) -> tuple[dict[str, list[int]], int]:
    stream = next(name for name in ("i", "o") if "count" in _fields(ports, name))
    other = "o" if stream == "i" else "i"
    words = {stream: block_streams.slices(ports, stream, job), other: block_streams.block_rows(ports, other, job)}
    return words, len(block_streams.payload(job))


def _entropy(ports: Ports, blocks: Tensor) -> tuple[dict[str, list[int]], int]:
    scan = to_zigzag(blocks.transpose(1, 2))
    segment = entropy_coder.segment(scan)
    if "count" in _fields(ports, "i"):
        words = {
            "i": entropy_coder.segments(ports, "i", [segment]),
            "o": entropy_coder.decoded_columns(ports, "o", [segment]),
        }
    else:
        words = {"i": entropy_coder.columns(ports, "i", [scan]), "o": entropy_coder.segments(ports, "o", [segment])}
    return words, len(segment)


def _fields(ports: Ports, stream: str) -> list[str]:
    return [entry["name"] for entry in ports[f"{stream}__payload"]["fields"]]


#: By coder what makes the words of its streams, and the bytes.
_CODERS: Mapping[str, Callable[[Ports, Tensor], tuple[dict[str, list[int]], int]]] = {
    "zvc": _zvc,
    "gmc": _gmc,
    "entropy": _entropy,
}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("activations", type=Path)
    parser.add_argument("--blocks", type=int, default=16, help="of each tensor (16)")
    parser.add_argument("--config", default="tiny")
    parser.add_argument("--pdk", default=pdk.DEFAULT)
    parser.add_argument("--clock-ns", type=float, default=1.6, help="period to aim at (1.6)")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    tensors = [one.values.float() for one in load_activations(arguments.activations)]
    contents = {table: coefficients(tensors, table, arguments.blocks) for table in _TABLES}
    library, config = pdk.find(arguments.pdk).read(), named_config(arguments.config)
    coders = [f"{name}_{way}" for name in _CODERS for way in ("encoder", "decoder")]
    scans = [path[0] for path in _PATHS if len(path) == 1]
    costs: dict[str, flow.Cost] = {}
    rates: dict[str, list[float]] = {}
    sizes: dict[str, list[str]] = {}
    for block in (*coders, *_QUANTIZERS, *_TRANSFORMS, *scans):
        print(f"{block} ...", file=sys.stderr, flush=True)
        # JPEG rounds to nearest.
        chosen = config.override(rounding=Rounding.HALF_AWAY.value, precision="ieee1180") if block in scans else config
        made = generator.generate(chosen, block)
        costs[block] = flow.choose(flow.synthesise(made.verilog, made.top, library, arguments.clock_ns), arguments.clock_ns)
        rates[block] = [BLOCK_SIDE for _ in contents]
        if block in coders:
            measured = [rate(block, chosen, content) for content in contents.values()]
            rates[block] = [values for values, _ in measured]
            sizes[block.partition("_")[0]] = [
                f"{bytes_ / len(content):.2f}" for (_, bytes_), content in zip(measured, contents.values(), strict=True)
            ]
        elif block in scans:
            rates[block] = [scan_rate(block, chosen, content, table) for table, content in contents.items()]
    _print_table("block", [(block,) for block in (*coders, *_QUANTIZERS)], costs, rates)
    print(table_row(["coder", *(f"bytes per block, {table}" for table in _TABLES)]))
    print(table_row(["---", *("--:" for _ in _TABLES)]))
    for name, cells in sizes.items():
        print(table_row([name, *cells]))
    print()
    _print_table("path", _PATHS, costs, rates)


def _print_table(
    title: str, paths: Sequence[Sequence[str]], costs: Mapping[str, flow.Cost], rates: Mapping[str, list[float]]
) -> None:
    """Area and rate of paths through one block or several."""
    print(table_row([title, "kGE", "flip-flops", "critical path (ns)", *(f"values per cycle, {table}" for table in _TABLES)]))
    print(table_row(["---", "--:", "--:", "--:", *("--:" for _ in _TABLES)]))
    for path in paths:
        parts = [costs[block] for block in path]
        slowest = [f"{min(rates[block][index] for block in path):.2f}" for index, _ in enumerate(_TABLES)]
        area, registers = sum(part.ge for part in parts) / 1e3, sum(part.flip_flops for part in parts)
        period = max(part.critical_path_ns for part in parts)
        print(table_row([", ".join(path), f"{area:.2f}", f"{registers:,}", f"{period:.2f}", *slowest]))
    print()


def coefficients(tensors: list[Tensor], table: str, count: int) -> Tensor:
    """Blocks (n, 8, 8) of int64, a column of each after the other: ``count`` from the middle of each tensor, truncated."""
    found = []
    for values in tensors:
        packed: Any = codec("jpeg-act", dqt=table, rounding="trunc", backend="native").compress(values)
        blocks = zvc.decode(packed.payload, packed.header.view.blocks).view(-1, BLOCK_SIDE, BLOCK_SIDE)
        middle = max(0, len(blocks) // 2 - count // 2)
        found.append(blocks[middle : middle + count].to(torch.int64))
    return torch.cat(found)


def rate(block: str, config: CduConfig, blocks: Tensor) -> tuple[float, int]:
    """Values per cycle of a coder, and the bytes. Ends when it does not give what the golden model says."""
    component = BLOCKS[block](config)
    ports = _ports(component)
    words, size = _CODERS[block.partition("_")[0]](ports, blocks)
    return _values_per_cycle(block, component, words["i"], words["o"], len(blocks)), size


def scan_rate(block: str, config: CduConfig, blocks: Tensor, table: str) -> float:
    """Values per cycle of what codes or decodes whole scans. Ends when it does not give what the golden model says."""
    shifts = dqt.shifts(table)
    divisors = tuple(1 << shifts[index] for index in ZIGZAG)
    component = BLOCKS[block](config)
    ports = _ports(component)
    scan = to_zigzag(blocks.transpose(1, 2))
    if block == "jpeg_encoder":
        samples = jpeg_scans.restored(config, scan, divisors)
        sent = jpeg_scans.sample_rows(ports, "i", [samples])
        segment = entropy_coder.segment(jpeg_scans.quantized(config, samples, divisors))
        wanted = entropy_coder.segments(ports, "o", [segment])
    else:
        segment = entropy_coder.segment(scan)
        sent = entropy_coder.segments(ports, "i", [segment])
        wanted = jpeg_scans.decoded_rows(config, ports, "o", [segment], divisors)
    settings = {"divisors": jpeg_scans.port_table(divisors)}
    return _values_per_cycle(block, component, sent, wanted, len(blocks), settings)


def _ports(component: Any) -> Ports:
    return {port["name"]: port for port in manifest.ports(component)}


def _values_per_cycle(
    block: str, component: Any, sent: list[int], wanted: list[int], blocks: int, settings: Mapping[str, Any] | None = None
) -> float:
    received, cycles = play(component, sent, settings)
    if received != wanted:
        sys.exit(f"{block} differs from the golden model")
    return blocks * BLOCK_VALUES / cycles


if __name__ == "__main__":
    main()
