"""Summaries of the sections of docs/evidence/results.md: what the page shows of their tables."""

from __future__ import annotations

import front_page
from digest import Table, numbers, wrapped


def whole(found: dict[str, Table]) -> str:
    """Return the first table."""
    return next(iter(found.values())).markdown()


def verified(found: dict[str, Table]) -> str:
    blocks, points = found["blocks"], found["cover"]
    cases, cycles = (sum(map(int, blocks.column(name))) for name in ("cases", "cycles"))
    bins, hit = (sum(map(int, points.column(name))) for name in ("bins", "hit"))
    return wrapped(
        f"{len(blocks.rows)} builds of blocks and of the whole unit, {cases:,} cases, {cycles:,} cycles; "
        f"{hit} of {bins} bins of {len(points.rows)} cover points hit."
    )


def policies(found: dict[str, Table]) -> str:
    """Return the figures of the training loop, a row per policy."""
    shown = ("ratio", "values_per_busy_cycle")
    rows: dict[str, dict[str, str]] = {}
    for _, test, what, figure in found["measured"].rows:
        rows.setdefault(test.partition("policy=")[2], {})[what] = figure
    header = ("policy", *(name.replace("_", " ") for name in shown))
    return Table(header, tuple((name, *(figures[what] for what in shown)) for name, figures in rows.items())).markdown()


def slowest(found: dict[str, Table]) -> str:
    """The slowest job of each size of unit, by direction, as a share of what its ports let through."""
    (table,) = found.values()
    rows = []
    for cdus in dict.fromkeys(table.column("N")):
        of_size = table.where(N=cdus)
        shares = []
        for direction in ("compress", "decompress"):
            jobs = of_size.where(direction=direction)
            rates = zip(numbers(jobs.column("values/cycle")), numbers(jobs.column("possible")), strict=True)
            shares.append(f"{min(rate / possible for rate, possible in rates):.1%}")
        rows.append((cdus, f"{max(numbers(of_size.column('values/cycle'))):.2f}", *shares))
    return Table(("N", "greatest values/cycle", "slowest compression", "slowest decompression"), tuple(rows)).markdown()


def rounding(found: dict[str, Table]) -> str:
    """Bytes of one rounding at the error of the other, and the greatest change of the error by the narrowest scale."""
    factors = numbers(found["equal_error"].column("half_away / trunc"))
    wide, narrow = (numbers(found["scale"].column(f"error, scale {bits} bits")) for bits in (24, 8))
    change = max(abs(one / other - 1) for one, other in zip(narrow, wide, strict=True))
    return wrapped(
        f"At equal error half_away needs {min(factors):.3f} to {max(factors):.3f} times the bytes of trunc "
        f"({len(factors)} points). A scale of 8 bits instead of 24 changes the error by at most {change:.1%}."
    )


#: Methods and steps on the page; the others are in the files.
SHOWN = ("jpeg-act optL", "blpa-coded 4", "auto 12x")


STEPS = ("without", "checkpoints", "save_on_cpu", "FP8 pass", "compiled, int8", "blpa-coded")


def compared(found: dict[str, Table]) -> str:
    """Difference of the score and ratio of some methods, a column per network."""
    table = found["networks"]
    networks = list(dict.fromkeys(table.column("of")))
    rows = []
    for method in SHOWN:
        cells = table.where(method=method).only("of", "difference", "ratio").rows
        by_network = {network: f"{difference}, {ratio}x" if difference else "" for network, difference, ratio in cells}
        rows.append((method, *(by_network.get(network, "") for network in networks)))
    return Table(("method: difference, ratio", *networks), tuple(rows)).markdown()


def batches(found: dict[str, Table]) -> str:
    """Peak, what is kept, and the largest batch, a column per network."""
    (table,) = found.values()
    networks = list(dict.fromkeys(table.column("network")))
    rows = []
    for way in STEPS:
        cells = [table.where(network=network, step=way).only("peak", "kept MiB", "largest batch").rows for network in networks]
        rows.append((way, *(", ".join(row[0]) if row else "" for row in cells)))
    return Table(("step: peak, kept MiB, largest batch", *networks), tuple(rows)).markdown()


def recommended(found: dict[str, Table]) -> str:
    """Return the densest policies as on the front page, beside the effect of plain storage and of two bits."""
    return f"{front_page.BEGIN}\n\n{front_page.by_family(found['harm'])}\n\n{front_page.END}"


BLOCKS = ("dct", "compressor", "decompressor", "tiny")
LATENCY = ("block", "registers added", "kGE", "critical path, ns", "latency, cycles")
