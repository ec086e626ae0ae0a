"""Formats of compiled graphs: bits, errors, and the speed of inductor's code for them on one thread of the CPU.

    OMP_NUM_THREADS=1 python benchmarks/graph_formats.py
    OMP_NUM_THREADS=1 python benchmarks/graph_formats.py --only int8 int4-group --runs 30

Prints a markdown table of each format on tensors as a transformer has them, (2048, 768), and a convolutional network,
(32, 64, 32, 32), contiguous and with the channels last:

bits
    per value, scales included;
error, outliers
    relative error (L2) of normal values, and of values of which every 64th channel (the last axis of tokens, axis 1 of maps)
    is 30 times as wide; of ``brc``, with the values themselves, which it does not keep;
pack, unpack
    GB of float32 (4 bytes for each value, whatever the input) per second of processor time, the best of some runs, all formats
    in turn;
used
    the same for unpacking within the product with another tensor, as a backward does.
"""

from __future__ import annotations

import argparse
import ctypes
import time
from collections.abc import Callable
from typing import Any

import torch
from actcodec.graph.formats import FORMATS, Format, format_of, layout_of
from actcodec.graph.windows import Windows
from cdu_tools.report import table_row
from torch import Tensor
from torch._inductor.decomposition import select_decomp_table
from torch.fx.experimental.proxy_tensor import make_fx

COLUMNS = ("format", "tensor", "bits", "error", "outliers", "pack", "unpack", "used")
_VALUE_BYTES, _EVERY, _WIDER = 4, 64, 30.0
_MMAP_THRESHOLD, _TRIM_THRESHOLD, _MOST = -3, -1, 1 << 30


def tensors(*, outliers: bool) -> dict[str, Tensor]:
    """The inputs by name."""
    torch.manual_seed(0)
    tokens, maps = torch.randn(2048, 768), torch.randn(32, 64, 32, 32)
    if outliers:
        tokens[:, ::_EVERY] *= _WIDER
        maps[:, ::_EVERY] *= _WIDER
    return {"tokens": tokens, "maps": maps, "maps, channels last": maps.to(memory_format=torch.channels_last)}


def taken(form: Format, x: Tensor) -> Tensor:
    """Return the input of a format: values, or signs or positions where it is for these."""
    if form.name == "bits":
        return x > 0
    return x.abs().clamp_max(form.positions - 1).to(torch.int8) if isinstance(form, Windows) else x


def compiled(function: Callable[..., Any], *arguments: Tensor) -> Callable[..., Any]:
    """A function of tensors as a pass over a graph has it compiled."""
    torch._dynamo.reset()
    graph = make_fx(lambda *given: function(*given), decomposition_table=select_decomp_table())(*arguments)
    ready: Callable[..., Any] = torch.compile(graph, dynamic=False)
    ready(*arguments)
    return ready


def error(form: Format, x: Tensor) -> float:
    """Relative error of what comes back."""
    return float((form.unpack(form.pack(x), layout_of(x)) - x).norm() / x.norm())


def used(form: Format, parts: tuple[Tensor, ...], other: Tensor, x: Tensor) -> Tensor:
    """The product of what comes back with another tensor, or a choice by it."""
    value = form.unpack(parts, layout_of(x))
    return torch.where(value, other, 0.0) if value.dtype == torch.bool else value * other


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", default=list(FORMATS), metavar="FORMAT")
    parser.add_argument("--runs", type=int, default=15, help="runs per measurement; the best counts")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    # Memory that is given back to the system and fetched again would be most of what is measured.
    for parameter in (_MMAP_THRESHOLD, _TRIM_THRESHOLD):
        ctypes.CDLL(None).mallopt(parameter, _MOST)
    wide, calls, rows = tensors(outliers=True), list[list[tuple[Callable[..., Any], tuple[Tensor, ...]]]](), list[list[str]]()
    for name in arguments.only:
        form = format_of(name)
        for tensor, values in tensors(outliers=False).items():
            x = taken(form, values)
            if not form.fits(x):
                continue
            parts, other = form.pack(x), torch.randn_like(values)
            unpack = compiled(lambda *given, form=form, x=x: form.unpack(given, layout_of(x)), *parts)
            use = compiled(lambda other, *given, form=form, x=x: used(form, given, other, x), other, *parts)
            calls.append([(compiled(form.pack, x), (x,)), (unpack, parts), (use, (other, *parts))])
            errors = [f"{error(form, y):.2g}" for y in (values, wide[tensor])] if x is values else ["0", "0"]
            rows.append([name, tensor, f"{8 * sum(part.nbytes for part in parts) / x.numel():.2f}", *errors])
    best = [[float("inf")] * 3 for _ in calls]
    for _ in range(arguments.runs):
        for place, of_format in enumerate(calls):
            for which, (function, given) in enumerate(of_format):
                begin = time.process_time()
                function(*given)
                best[place][which] = min(best[place][which], time.process_time() - begin)
    print(table_row(COLUMNS))
    print(table_row(["---"] * len(COLUMNS)))
    for row, times, of_format in zip(rows, best, calls, strict=True):
        count = of_format[0][1][0].numel()
        print(table_row([*row, *(f"{_VALUE_BYTES * count / seconds / 1e9:.1f}" for seconds in times)]))


if __name__ == "__main__":
    main()
