"""Measure the error of decompressed values by the significand bits of reciprocals.

    python benchmarks/reciprocal_bits.py

Prints a markdown table: the error relative to the root mean square of the input, by bits of the reciprocals, for the inputs of
benchmarks/rounding_choice.py. The saving in gates:
``python benchmarks/area_by_parameter.py --block inverse_sfpr --parameter reciprocal_bits 24 16 12``.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from actcodec.codecs import codec
from actcodec.codecs.compressed import Compressed
from actcodec.golden.blocks import by_channel
from actcodec.golden.sfpr import reciprocals, scales
from cdu_spec import CduConfig
from cdu_spec.sfpr import PUBLISHED_S, RECIPROCAL_BITS
from cdu_tools.report import table_row
from rounding_choice import inputs, relative_error


def main() -> None:
    """Measure and print."""
    torch.set_num_threads(1)
    print(table_row(["input", "codec", *(f"error, {bits} bits" for bits in RECIPROCAL_BITS)]))
    print("|---|---|" + "---|" * len(RECIPROCAL_BITS))
    for name, x in inputs().items():
        for kind in ("sfpr", "jpeg-act"):
            packed = codec(kind, S=PUBLISHED_S).compress(x)
            assert isinstance(packed, Compressed)
            k, _ = scales(by_channel(x, packed.header.view), PUBLISHED_S, CduConfig.scale_bits)
            found = [replace(packed, reciprocals=reciprocals(k, bits)).decompress() for bits in RECIPROCAL_BITS]
            print(table_row([name, kind, *(f"{relative_error(x, y):.6f}" for y in found)]))


if __name__ == "__main__":
    main()
