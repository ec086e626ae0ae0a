"""Area, clock and rate of the coders of coefficients as blocks, on the same recorded activations: ZVC, GMC, JPEG-BASE's.

    python benchmarks/coder_blocks.py build/cifar.npz

The file is one that `cdu dqt --record` wrote. Prints the markdown tables of docs/methods/jpeg_base.md. All coders get the
coefficients of jpeg-act, so many blocks from the middle of each tensor, one behind the other, in a simulation in which nothing
waits. Values per cycle are 64 of each block, over the cycles from the first transfer to the last.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from actcodec.codecs import codec
from actcodec.golden import zvc
from actcodec.golden.zigzag import to_zigzag
from actcodec.study.activations import load_activations
from cdu.delivery import generator, manifest
from cdu.delivery.blocks import BLOCKS
from cdu_spec import named_config
from cdu_spec.bitstream import Mode
from cdu_spec.geometry import BLOCK_SIDE, BLOCK_VALUES
from cdu_synth.area import flow
from cdu_synth.library import pdk
from cdu_tools.report import table_row
from cdu_verif.benches.full_rate import play
from cdu_verif.cases import block_streams, entropy_coder, gmc
from cdu_verif.cases.case import Ports
from torch import Tensor

_TABLES = ("optL", "uniform-16")
_QUANTIZERS = ("shift_quantizer", "inverse_shift_quantizer", "div_quantizer", "inverse_div_quantizer")


def _zvc(ports: Ports, blocks: Tensor) -> tuple[dict[str, list[int]], int]:
    job = block_streams.job(blocks.reshape(-1, BLOCK_SIDE), Mode.SFPR_ZVC)
    return _of_job(ports, job)


def _gmc(ports: Ports, blocks: Tensor) -> tuple[dict[str, list[int]], int]:
    return _of_job(ports, gmc.job(blocks))


def _of_job(ports: Ports, job: list[block_streams.Block]) -> tuple[dict[str, list[int]], int]:
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
    titles = [f"values per cycle, {table}" for table in _TABLES]
    print(table_row(["block", "kGE", "flip-flops", "critical path (ns)", *titles]))
    print(table_row(["---", "--:", "--:", "--:", *("--:" for _ in titles)]))
    sizes: dict[str, list[str]] = {}
    for block in (*(f"{name}_{way}" for name in _CODERS for way in ("encoder", "decoder")), *_QUANTIZERS):
        print(f"{block} ...", file=sys.stderr, flush=True)
        made = generator.generate(config, block)
        cost = flow.choose(flow.synthesise(made.verilog, made.name, library, arguments.clock_ns), arguments.clock_ns)
        rates = ["8"] * len(contents)
        if block not in _QUANTIZERS:
            measured = [rate(block, config, content) for content in contents.values()]
            rates = [f"{values:.2f}" for values, _ in measured]
            name = block.partition("_")[0]
            sizes[name] = [
                f"{bytes_ / len(content):.2f}" for (_, bytes_), content in zip(measured, contents.values(), strict=True)
            ]
        print(
            table_row([block, f"{cost.ge / 1e3:.2f}", f"{cost.flip_flops:,}", f"{cost.critical_path_ns:.2f}", *rates]),
            flush=True,
        )
    print()
    print(table_row(["coder", *(f"bytes per block, {table}" for table in _TABLES)]))
    print(table_row(["---", *("--:" for _ in _TABLES)]))
    for name, cells in sizes.items():
        print(table_row([name, *cells]))


def coefficients(tensors: list[Tensor], table: str, count: int) -> Tensor:
    """Blocks (n, 8, 8) of int64, a column of each after the other: ``count`` from the middle of each tensor, truncated."""
    found = []
    for values in tensors:
        packed: Any = codec("jpeg-act", dqt=table, rounding="trunc", backend="native").compress(values)
        blocks = zvc.decode(packed.payload, packed.header.view.blocks).view(-1, BLOCK_SIDE, BLOCK_SIDE)
        middle = max(0, len(blocks) // 2 - count // 2)
        found.append(blocks[middle : middle + count].to(torch.int64))
    return torch.cat(found)


def rate(block: str, config: Any, blocks: Tensor) -> tuple[float, int]:
    """Values per cycle of a coder, and the bytes. Ends when it does not give what the golden model says."""
    component = BLOCKS[block](config)
    ports = {port["name"]: port for port in manifest.ports(component)}
    words, size = _CODERS[block.partition("_")[0]](ports, blocks)
    received, cycles = play(component, words["i"])
    if received != words["o"]:
        sys.exit(f"{block} differs from the golden model")
    return len(blocks) * BLOCK_VALUES / cycles, size


if __name__ == "__main__":
    main()
