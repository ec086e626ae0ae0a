"""Measure the cost of GMC's heads and padding, and the saving of one head for several blocks.

    python benchmarks/gmc_heads.py build/cifar.npz build/vgg.npz

Files are those that `cdu dqt --record` wrote. Writes jpeg_gmc_heads.csv beside docs/methods/jpeg_gmc.md: change of the
payload if blocks had no head each, but k of them one head byte and no padding between them. The present content of a head, the
category of DC, then has a Huffman code (JPEG's, of which one word is not used) made for the very file; real tables would
save less.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import cast

import torch
from actcodec.codecs import Compressed, codec
from actcodec.golden import gmc
from actcodec.golden.huffman import optimal_table
from actcodec.study.activations import load_activations
from cdu_spec.gmc import MAX_CATEGORY
from cdu_spec.sfpr import PUBLISHED_S
from cdu_tools.files import write_whole
from cdu_tools.report import Table
from torch import Tensor

#: Folder of the rows.
_PAGES = Path(__file__).parent.parent / "docs" / "methods"
_TABLES = ("uniform-8", "uniform-16", "uniform-32")
_TOGETHER = (1, 2, 4, 8)


def payload_bytes(bits: Tensor, together: int) -> int:
    """Bytes of blocks of so many bits, ``together`` of them behind one head byte."""
    groups = torch.cat((bits, bits.new_zeros(-len(bits) % together))).view(-1, together).sum(1)
    return int(((groups + 7) // 8 + 1).sum())


def row(path: Path, table: str) -> list[str]:
    """A file's line."""
    made = codec("jpeg-gmc", dqt=table, S=PUBLISHED_S, backend="native")
    packed = [cast(Compressed, made.compress(one.values.float())) for one in load_activations(path)]
    coded = [gmc.code_bits(gmc.decode(one.payload, one.header.view.blocks).view(-1, 64)) for one in packed]
    today, blocks = sum(one.payload.numel() for one in packed), sum(len(bits) for _, bits in coded)
    counts = torch.cat([category for category, _ in coded]).bincount(minlength=MAX_CATEGORY + 1)
    words = optimal_table(counts.tolist()).codes
    of_category = torch.tensor([words.get(category, (0, 0))[1] for category in range(MAX_CATEGORY + 1)])
    codes = sum(int(bits.sum()) for _, bits in coded) / 8
    changes = [sum(payload_bytes(bits + of_category[c], k) for c, bits in coded) / today - 1 for k in _TOGETHER]
    figures = [f"{today / blocks:.2f}", f"{100 * (1 - codes / today):.1f} %", *(f"{100 * change:+.1f} %" for change in changes)]
    return [path.stem, table, *figures]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("activations", type=Path, nargs="+")
    files = parser.parse_args().activations
    torch.set_num_threads(1)
    head = ("network", "table", "bytes/block", "heads and padding", *(f"k = {k}" for k in _TOGETHER))
    found = Table(head, [row(path, table) for table in _TABLES for path in files])
    write_whole(_PAGES / "jpeg_gmc_heads.csv", found.csv())
    print(found.markdown())


if __name__ == "__main__":
    main()
