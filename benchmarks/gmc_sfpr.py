"""Measure codes of GMC's family on streams of mode sfpr+zvc, whose values are SFPR's integers and not coefficients.

    python benchmarks/gmc_sfpr.py --data cifar10.npz

Networks train for some steps; the tensors that policy jpeg-act gives to sfpr+zvc in the next step (results of ReLU, pools,
dropout that another layer reads) are quantised as that mode does. Writes jpeg_gmc_sfpr.csv and jpeg_gmc_sfpr_unsigned.csv
beside docs/methods/jpeg_gmc.md: bytes per block of 64 values of all such tensors of a network. Tables are trained on the first
two networks.

entropy        of the values of each tensor alone, with a table of its own that costs nothing: a bound, no code
GMC            unchanged: a row of 8 values takes the place of a column of coefficients, the first value of a block that of DC
tables         the same code, its tables trained, words no longer than GMC's
masks          groups of the largest class have a mask and fields too, where GMC writes their bytes; tables trained
magnitudes     ZVC's mask, and for each nonzero value a word for its class of magnitude (one table, trained, no longer
               words than those of GMC's classes), sign and low bits; a head byte, because the mask does not give the length

Only the lengths of the three new codes are computed, as if a last byte of zeros were written; with GMC's own tables that makes
0.7 to 1 % more than GMC. The last column of the first table has the values per cycle that GMC's encoder and decoder pass,
unchanged, in a simulation without waiting, some blocks of each tensor in sequence. The second table is without signs: one bit
less for each nonzero value in tensors without a negative value.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import cast

import numpy as np
import torch
from actcodec.codecs import Compressed, codec
from actcodec.golden import gmc, zvc
from actcodec.golden.huffman import code_lengths
from actcodec.policies.policy import SavedTensor
from actcodec.policies.tables.modes import jpeg_act_policy
from actcodec.study.data import load
from cdu_spec import gmc as spec
from cdu_spec import named_config
from cdu_spec.geometry import BLOCK_SIDE, BLOCK_VALUES, VALUE_BITS
from cdu_spec.modes import MASK_BYTES, Mode
from cdu_tools.files import write_whole
from cdu_tools.report import Table
from coder_blocks import rate
from recorded import CNNS, IMAGES, KEPT, Training, record, trainings
from torch import Tensor

#: Folder of the rows.
_PAGES = Path(__file__).parent.parent / "docs" / "methods"
#: Tables come from so many networks, the first ones.
TRAINED = 2
#: Blocks of each tensor that are simulated.
_PLAYED = 16
#: Networks of torchvision by name and side of their images.
_LIBRARY = (("resnet18", 64), ("vgg11_bn", 64), ("squeezenet1_1", 64))
#: Greatest magnitudes of all classes but the last.
_LIMITS = torch.tensor((0, *(1 << number - 1 for number in spec.CODED_CLASSES)))
#: Words by symbol for A, B, masks and magnitudes: rows, symbols, bits of the longest one.
_KINDS = {
    "a": (len(spec.A_CODES), len(spec.A_CODES[0]), spec.longest(spec.A_CODES)),
    "b": (len(spec.B_CODES), len(spec.B_CODES[0]), spec.longest(spec.B_CODES)),
    "mask": (len(spec.MASK_CODES), len(spec.MASK_CODES[0]), spec.longest(spec.MASK_CODES)),
    "magnitude": (1, VALUE_BITS, spec.longest(spec.B_CODES)),
}
#: Bits of the words of each kind, int64 (rows, symbols).
Tables = dict[str, Tensor]


@dataclass(frozen=True)
class Sparse:
    """A tensor in mode sfpr+zvc."""

    blocks: Tensor  #: int8 (n, 64)

    @property
    def negative(self) -> bool:
        """Return whether any value is negative."""
        return bool((self.blocks < 0).any())


@dataclass(frozen=True)
class Symbols:
    """The words and bits of a code for blocks: by kind the rows, the numbers and the presence of words, (n, ...) each."""

    words: dict[str, tuple[Tensor, Tensor, Tensor]]
    rest: Tensor  #: bits (n,) of signs, low bits and bytes
    nonzero: Tensor  #: values (n,) that have a sign

    def counts(self) -> dict[str, Tensor]:
        """Count each word by kind, (rows, symbols)."""
        return {kind: _count(kind, *where) for kind, where in self.words.items()}

    def bits(self, tables: Tables, *, signs: bool) -> Tensor:
        """Bits (n,) of each block."""
        total = self.rest - (0 if signs else self.nonzero)
        for kind, (rows, symbols, present) in self.words.items():
            total = total + (tables[kind][rows, symbols] * present).flatten(1).sum(1)
        return total


def _count(kind: str, rows: Tensor, symbols: Tensor, present: Tensor) -> Tensor:
    height, width, _ = _KINDS[kind]
    found = (rows * width + symbols)[present]
    return found.bincount(minlength=height * width).view(height, width)


def classes_and_masks(blocks: Tensor, *, masks: bool) -> Symbols:
    """GMC's words; with ``masks`` the largest class is like the others. What ends in zeros is not written, as in GMC."""
    x = blocks.to(torch.int64)
    dc = x[:, 0].abs()
    x[:, 0] = 0
    groups = x.view(-1, BLOCK_SIDE, BLOCK_SIDE // spec.GROUP_VALUES, spec.GROUP_VALUES)
    classes = torch.bucketize(groups.abs().amax(3), _LIMITS)
    a, b = classes.unbind(2)
    before = torch.cat((torch.zeros_like(classes[:, :1]), classes[:, :-1]), 1)
    symbols = torch.where(a > 0, a + 1, torch.where(b > 0, spec.A_ZERO, spec.A_BOTH_ZERO))
    place = torch.arange(BLOCK_SIDE)
    context_a, context_b = gmc.contexts(before, symbols, place == 0)
    # Words of columns without a value are zeros; those before the last fields are written.
    columns = ((symbols != spec.A_BOTH_ZERO) * (place + 1)).amax(1, keepdim=True)
    written = place <= torch.where(columns > 0, columns, -1)
    present = (groups != 0).to(torch.int64)
    coded = (classes > spec.ZERO_CLASS) & ((classes < spec.RAW_CLASS) | masks)
    mask = (present << torch.arange(spec.GROUP_VALUES)).sum(3)
    words = {
        "a": (context_a, symbols, written),
        "b": (context_b, b, symbols != spec.A_BOTH_ZERO),
        "mask": ((classes.clamp(1, spec.LAST_MASK_CLASS) - 1), mask.clamp(min=1) - 1, coded),
    }
    size = torch.where(classes < spec.RAW_CLASS, classes, VALUE_BITS)
    values = torch.where(coded, present.sum(3), spec.GROUP_VALUES * (classes == spec.RAW_CLASS)).flatten(1)
    category = torch.bucketize(dc, 2 ** torch.arange(spec.MAX_CATEGORY) - 1)
    rest = (values * size.flatten(1)).sum(1) + category
    return Symbols(words, rest, values.sum(1) + (dc > 0))


def magnitudes(blocks: Tensor) -> Symbols:
    """A word for the class of each value that is not 0, and its sign and low bits."""
    x = blocks.to(torch.int64).abs()
    present = x > 0
    # Class k is 2**(k - 1) + 1 to 2**k.
    classes = torch.bucketize(x, 2 ** torch.arange(VALUE_BITS))
    low, nonzero = ((classes - 1).clamp(min=0) * present).sum(1), present.sum(1)
    return Symbols({"magnitude": (torch.zeros_like(classes), classes, present)}, low + nonzero, nonzero)


def trained(counts: Sequence[dict[str, Tensor]]) -> Tables:
    """The tables that make the fewest bits of all words together; every word is there, even one that never came."""
    tables = {}
    for kind in counts[0]:
        longest = _KINDS[kind][2]
        total = torch.stack([one[kind] for one in counts]).sum(0) + 1
        tables[kind] = torch.from_numpy(np.stack([code_lengths(row.numpy(), longest) for row in total]))
    return tables


def group_bytes(bits: Tensor) -> Tensor:
    """Return the bytes (n,) of blocks of GMC's form from the bits of their bodies; long bodies contain DC's category."""
    short = (bits + 7) // 8
    long = ((bits + spec.CATEGORY_BITS + 7) // 8).clamp(min=spec.SHORT_BYTES + 1)
    return 1 + torch.where(short > spec.SHORT_BYTES, long, short)


def masked_bytes(bits: Tensor) -> Tensor:
    """Bytes (n,) of blocks with a head, a mask and so many bits."""
    return 1 + MASK_BYTES + (bits + 7) // 8


def zvc_bytes(one: Sparse, *, signs: bool) -> int:
    """Bytes of ZVC, or of a ZVC whose values have no sign."""
    bits = (one.blocks != 0).sum(1) * (VALUE_BITS if signs else VALUE_BITS - 1)
    return int((MASK_BYTES + (bits + 7) // 8).sum())


def entropy_bytes(one: Sparse) -> float:
    """Bytes that the values of a tensor have by their frequencies."""
    counts = (one.blocks.flatten().to(torch.int64) + 128).bincount().double()
    counts = counts[counts > 0]
    return float((counts * (counts.sum() / counts).log2()).sum() / 8)


#: Symbols of a code for blocks, and bytes of blocks from their bits.
CODES: dict[str, tuple[Callable[[Tensor], Symbols], Callable[[Tensor], Tensor]]] = {
    "tables": (partial(classes_and_masks, masks=False), group_bytes),
    "masks": (partial(classes_and_masks, masks=True), group_bytes),
    "magnitudes": (magnitudes, masked_bytes),
}


def sparse_tensors(training: Training) -> list[Sparse]:
    """Return tensors that policy jpeg-act gives to sfpr+zvc, a few samples of each."""
    table, found = jpeg_act_policy(), list[Tensor]()

    def keep(tensor: SavedTensor, x: Tensor) -> None:
        chosen = table.choose(tensor)
        if chosen is not None and chosen.name == Mode.SFPR_ZVC.label:
            found.append(x[:KEPT].float().contiguous())

    record(training, keep)
    packed = [cast(Compressed, codec(Mode.SFPR_ZVC.label, backend="native").compress(x)) for x in found]
    return [Sparse(zvc.decode(one.payload, one.header.view.blocks)) for one in packed]


def cells(network: str, tensors: Sequence[Sparse], tables: dict[str, Tables], *, signs: bool) -> Iterator[str]:
    """The cells of a network."""
    blocks = sum(len(one.blocks) for one in tensors)
    zeros = sum(int((one.blocks == 0).sum()) for one in tensors) / (BLOCK_VALUES * blocks)
    needed = [signs or one.negative for one in tensors]
    published = sum(zvc_bytes(one, signs=True) for one in tensors)
    yield from (network, str(len(tensors)), f"{100 * zeros:.0f} %", f"{published / blocks:.2f}")
    sizes = []
    if signs:
        sizes += [sum(map(entropy_bytes, tensors)), sum(gmc.encode(one.blocks)[0].numel() for one in tensors)]
    else:
        sizes += [sum(zvc_bytes(one, signs=need) for one, need in zip(tensors, needed, strict=True))]
    lengths = {
        name: torch.cat(
            [size(symbols(one.blocks).bits(tables[name], signs=need)) for one, need in zip(tensors, needed, strict=True)]
        )
        for name, (symbols, size) in CODES.items()
    }
    sizes += [int(length.sum()) for length in lengths.values()]
    yield from (f"{size / blocks:.2f} ({100 * (size / published - 1):+.1f} %)" for size in sizes)
    if signs:
        middle = torch.cat([one.blocks[len(one.blocks) // 2 :][:_PLAYED] for one in tensors])
        columns = middle.view(-1, BLOCK_SIDE, BLOCK_SIDE).to(torch.int64)
        yield ", ".join(f"{rate(block, named_config('tiny'), columns)[0]:.2f}" for block in ("gmc_encoder", "gmc_decoder"))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="CIFAR-10 as .npz")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    cifar = load("cifar10", arguments.data, IMAGES)
    networks = {name: sparse_tensors(training) for name, training in trainings(cifar, CNNS, _LIBRARY)}
    seen = [one for name in list(networks)[:TRAINED] for one in networks[name]]
    tables = {name: trained([symbols(one.blocks).counts() for one in seen]) for name, (symbols, _) in CODES.items()}
    for name_of_file, signs, head in (
        ("jpeg_gmc_sfpr", True, ("entropy", "GMC", *CODES, "values per cycle")),
        ("jpeg_gmc_sfpr_unsigned", False, ("ZVC without signs", *CODES)),
    ):
        lines = [tuple(cells(name, tensors, tables, signs=signs)) for name, tensors in networks.items()]
        found = Table(("network", "tensors", "zeros", "ZVC", *head), lines)
        write_whole(_PAGES / f"{name_of_file}.csv", found.csv())
        print(found.markdown(), end="\n\n")


if __name__ == "__main__":
    main()
