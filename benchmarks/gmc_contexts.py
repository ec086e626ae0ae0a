"""Measure what contexts would save beside GMC, for maps that jpeg-gmc transforms and for rectified maps without a transform.

    python benchmarks/gmc_contexts.py --data cifar10.npz

Networks train for some steps; maps of the next step go through codec jpeg-gmc. Writes jpeg_gmc_contexts.csv beside
docs/methods/jpeg_gmc.md: bytes per block of 64 values, heads and padding included, and how many bits other codes of maps with
the same error would take. Tables come from the first two networks.

words          GMC, its tables made anew for each of four ranges of horizontal frequencies, with words no longer than today's
column         fractions of bits, as arithmetic coding has, in contexts that a decoder of a column per cycle knows: the three
               neighbours in the column before, and the range of frequencies
neighbours     the same with the neighbours above too, one value after the other
no transform   rectified maps only: integers with a dead zone (rounded up from .6) at the error of jpeg-gmc's maps, each
               magnitude at the mean of its values, without signs; contexts of the column before, and of the left and the upper
               neighbour

No code but GMC and "words" has whole bits, heads or padding: the figures bound such codes from below.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import torch
from actcodec.codecs import Compressed, codec
from actcodec.golden import gmc
from actcodec.policies.policy import SavedTensor
from actcodec.study.data import load
from cdu_spec.geometry import BLOCK_SIDE, BLOCK_VALUES
from cdu_spec.sfpr import VALUE_MAX
from cdu_tools.files import write_whole
from cdu_tools.report import Table
from gmc_sfpr import TRAINED, Symbols, classes_and_masks, group_bytes, trained
from recorded import CNNS, IMAGES, KEPT, Training, record, trainings
from torch import Tensor

#: Folder of the rows.
_PAGES = Path(__file__).parent.parent / "docs" / "methods"
_TABLES = ("uniform-8", "uniform-16")
_LIBRARY = (("resnet18", 64), ("vgg11_bn", 64), ("mobilenet_v2", 64))
#: Range of each horizontal frequency, and number of ranges.
_RANGE = torch.tensor((0, 1, 2, 2, 3, 3, 3, 3))
_RANGES = 4
#: Greatest magnitudes, and sums of weighted magnitudes of neighbours, that share a token, and a context.
_TOKENS = torch.tensor((0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128))
_SUMS = torch.tensor((0, 1, 2, 3, 5, 8, 13, 24, 50))
_VALUES = torch.tensor((0, 1, 2, 3, 5, 8, 16))
#: Values from this part of a step on become the next integer in the form without transform, and steps that are tried.
_UP, _HALVINGS = 0.6, 12

#: Contexts (n, 8, 8) of magnitudes (n, 8, 8) [column][row].
Contexts = Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class Map:
    """A map and the blocks that jpeg-gmc makes of it."""

    values: Tensor  #: (N, C, H, W)
    blocks: Tensor  #: int8 (n, 64)
    nbytes: int
    error: float  #: of the values that come back, relative to the norm


def values_of(training: Training) -> list[Tensor]:
    """Return maps that a network saves, a few samples of each, without its input."""
    found = list[Tensor]()

    def keep(tensor: SavedTensor, x: Tensor) -> None:
        if tensor.producer != "input" and x.ndim == 4 and not (x.shape[2] % BLOCK_SIDE or x.shape[3] % BLOCK_SIDE):
            found.append(x[:KEPT].float().contiguous())

    record(training, keep)
    return found


def coded(x: Tensor, table: str) -> Map:
    """Return a map with its blocks."""
    made = codec("jpeg-gmc", dqt=table, backend="native")
    packed = cast(Compressed, made.compress(x))
    blocks = gmc.decode(packed.payload, packed.header.view.blocks).view(-1, BLOCK_VALUES)
    return Map(x, blocks, packed.payload.numel(), relative(made.decompress(packed), x))


def relative(y: Tensor, x: Tensor) -> float:
    """Return the error of ``y``."""
    return float((y - x).norm() / x.norm())


def shifted(x: Tensor, columns: int, rows: int) -> Tensor:
    """Return blocks (n, 8, 8) moved by so many columns and rows (-1, 0 or 1), with zeros behind."""
    wide = torch.nn.functional.pad(x, (1, 1, 1, 1))
    return wide[:, 1 - columns : 1 - columns + BLOCK_SIDE, 1 - rows : 1 - rows + BLOCK_SIDE]


def column_before(x: Tensor) -> Tensor:
    """Contexts of the three neighbours in the column before, and of the range of frequencies."""
    near = 2 * shifted(x, 1, 0) + shifted(x, 1, 1) + shifted(x, 1, -1)
    return torch.bucketize(near.contiguous(), _SUMS) * _RANGES + _RANGE[:, None]


def all_neighbours(x: Tensor) -> Tensor:
    """Contexts of all neighbours that come before a value, and of the range of frequencies."""
    near = 2 * shifted(x, 1, 0) + shifted(x, 1, 1) + shifted(x, 1, -1) + 2 * shifted(x, 0, 1)
    return torch.bucketize(near.contiguous(), _SUMS) * _RANGES + _RANGE[:, None]


def left_and_around(x: Tensor) -> Tensor:
    """Contexts of the left neighbour, and of those above and below that."""
    around = (shifted(x, 1, 1) + shifted(x, 1, -1) + 1) // 2
    return pairs(shifted(x, 1, 0), around)


def left_and_above(x: Tensor) -> Tensor:
    """Contexts of the left and of the upper neighbour."""
    return pairs(shifted(x, 1, 0), shifted(x, 0, 1))


def pairs(first: Tensor, second: Tensor) -> Tensor:
    """Return a context for each pair of magnitudes."""
    return torch.bucketize(first.contiguous(), _VALUES) * (len(_VALUES) + 1) + torch.bucketize(second.contiguous(), _VALUES)


def counts(magnitudes: Tensor, contexts: Contexts) -> Tensor:
    """Count tokens, (contexts, tokens)."""
    width = len(_TOKENS) + 1
    place = contexts(magnitudes) * width + torch.bucketize(magnitudes, _TOKENS)
    return place.flatten().bincount(minlength=64 * width).view(64, width).double()


def bits(magnitudes: Tensor, contexts: Contexts, table: Tensor) -> float:
    """Bits of tokens by a table of counts, and of what tokens leave open."""
    table = table + 0.02 * table.sum(0) / table.sum() + 1e-3
    widths = torch.diff(_TOKENS, prepend=torch.tensor([-1]), append=torch.tensor([2 * int(_TOKENS[-1])])).double()
    each = widths.log2() - (table / table.sum(1, keepdim=True)).log2()
    return float((counts(magnitudes, contexts) * each).sum())


def integers(x: Tensor, error: float) -> Tensor:
    """Return magnitudes, int64 (n, 8, 8) [column][row], of a rectified map as integers with that error."""
    unit = x.amax((0, 2, 3), keepdim=True).clamp(min=torch.finfo(x.dtype).tiny)
    low, high = 1 / VALUE_MAX, 2.0
    for _ in range(_HALVINGS):
        step = (low * high) ** 0.5
        q = (x / (unit * step) + 1 - _UP).floor()
        means = q.clone()
        for chosen in (q == 1, q > 1):
            means[chosen] += (x / (unit * step) - q)[chosen].mean().nan_to_num()
        low, high = (step, high) if relative(means * unit * step, x) < error else (low, step)
    n, c, h, w = x.shape
    blocks = q.view(n * c, h // BLOCK_SIDE, BLOCK_SIDE, w // BLOCK_SIDE, BLOCK_SIDE).permute(0, 1, 3, 4, 2)
    found: Tensor = blocks.reshape(-1, BLOCK_SIDE, BLOCK_SIDE).to(torch.int64)
    return found


def words_by_range(blocks: Tensor) -> Iterator[Symbols]:
    """GMC's words, those of each range of frequencies apart; the bits of the rest come with the first range."""
    whole = classes_and_masks(blocks, masks=False)
    for number in range(_RANGES):
        here = _RANGE.eq(number)
        words = {
            kind: (rows, symbols, present & (here if kind != "mask" else here[:, None]))
            for kind, (rows, symbols, present) in whole.words.items()
        }
        yield Symbols(words, whole.rest * (number == 0), whole.nonzero)


def cells(networks: dict[str, list[Map]], rectified: bool) -> Iterator[tuple[str, ...]]:
    """Yield, for each network that has such maps: name, maps, error, bytes of GMC's blocks, and the changes by other codes."""
    chosen = {name: [one for one in maps if bool(one.values.min() >= 0) == rectified] for name, maps in networks.items()}
    seen = [one for name in list(networks)[:TRAINED] for one in chosen[name]]
    ranges = [list(words_by_range(one.blocks)) for one in seen]
    tables = [trained([one[number].counts() for one in ranges]) for number in range(_RANGES)]
    plain: dict[int, Tensor] = {id(one): magnitudes(one) for maps in chosen.values() for one in maps}
    bare = {id(one): integers(one.values, one.error) for maps in chosen.values() for one in maps} if rectified else {}
    forms = [(plain, column_before), (plain, all_neighbours)]
    forms += [(bare, left_and_around), (bare, left_and_above)] * rectified
    found = [sum((counts(form[id(one)], contexts) for one in seen), torch.zeros(())) for form, contexts in forms]
    for name, maps in chosen.items():
        if not maps:
            continue
        today = sum(one.nbytes for one in maps)
        sizes = [float(sum(word_bytes(one.blocks, tables) for one in maps))]
        for (form, contexts), table in zip(forms, found, strict=True):
            signs = sum(int((form[id(one)] > 0).sum()) for one in maps) if form is plain else 0
            dc = sum(dc_bits(one.blocks) for one in maps) if form is plain else 0
            sizes.append((sum(bits(form[id(one)], contexts, table) for one in maps) + signs + dc) / 8)
        error = sum(one.error for one in maps) / len(maps)
        blocks = sum(len(one.blocks) for one in maps)
        changes = [f"{100 * (size / today - 1):+.1f} %" for size in sizes] + ["-", "-"] * (not rectified)
        yield name, "rectified" if rectified else "signed", str(len(maps)), f"{error:.3f}", f"{today / blocks:.2f}", *changes


def magnitudes(one: Map) -> Tensor:
    """Return magnitudes of the coefficients of a map, int64 (n, 8, 8) [horizontal][vertical frequency], DC as zero."""
    x = one.blocks.to(torch.int64).abs()
    x[:, 0] = 0
    return x.view(-1, BLOCK_SIDE, BLOCK_SIDE)


def dc_bits(blocks: Tensor) -> int:
    """Bits of DC in GMC: three of its category, and as many as the category says."""
    return 3 * len(blocks) + int(gmc.code_bits(blocks)[0].sum())


def word_bytes(blocks: Tensor, tables: Sequence[dict[str, Tensor]]) -> int:
    """Bytes of blocks with tables by range."""
    parts = zip(words_by_range(blocks), tables, strict=True)
    return int(group_bytes(torch.stack([part.bits(table, signs=True) for part, table in parts]).sum(0)).sum())


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="CIFAR-10 as .npz")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    cifar = load("cifar10", arguments.data, IMAGES)
    values = {name: values_of(training) for name, training in trainings(cifar, CNNS, _LIBRARY)}
    lines = []
    for table in _TABLES:
        networks = {name: [coded(x, table) for x in maps] for name, maps in values.items()}
        lines += [(table, *line) for rectified in (False, True) for line in cells(networks, rectified)]
    codes = ("words", "column", "neighbours", "no transform, column", "no transform, neighbours")
    found = Table(("table", "network", "maps", "number", "error", "GMC", *codes), lines)
    write_whole(_PAGES / "jpeg_gmc_contexts.csv", found.csv())
    print(found.markdown())


if __name__ == "__main__":
    main()
