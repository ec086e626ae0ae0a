"""Tests of the whole unit through its AXI ports; the other end is cocotbext-axi, the programs are the driver's."""

from __future__ import annotations

from itertools import pairwise, product
from typing import Any

from cdu_spec import register_types, registers
from cdu_spec.geometry import TILE_BLOCKS, TILE_COLUMNS
from cdu_spec.modes import Mode
from cdu_spec.register_types import Channel

from cdu_verif.benches.array_bench import ArrayBench
from cdu_verif.content.tensors import KINDS, Exchange, exchange, first_pass
from cdu_verif.simulation.axi_ports import SLVERR
from cdu_verif.simulation.bench import simulated_config
from cdu_verif.simulation.bench_test import bench_test
from cdu_verif.simulation.patterns import PATTERNS
from cdu_verif.stimulus.register_values import taken

_CONFIG = simulated_config()
_MODES = _CONFIG.built_modes
#: Greatest width that is tried one by one.
_WIDTHS = 70
#: Parts into which the quick level divides the widths among the numbers of CDUs.
_SHARES = 4
#: Jobs of each mode in each direction that a long run plays.
_MANY_JOBS = 24
#: Channels of a wide layer.
_MANY_CHANNELS = 2048


def _random_item(bench: ArrayBench, mode: Mode) -> Exchange:
    """A small tensor of any shape and content."""
    rng = bench.rng
    shape = (rng.randint(1, 2), rng.randint(1, 3), rng.randint(1, 9), rng.randint(1, _WIDTHS))
    return exchange(bench.config, rng, shape, mode, rng.choice(KINDS))


@bench_test(ArrayBench)
async def register_map(bench: ArrayBench) -> None:
    """Every register has its reset value, says how the unit was built, keeps what it shall keep and refuses what it shall."""
    rows = list(registers.entries(bench.config))
    for row in rows:
        for address in _addresses(row):
            value = await bench.bus.read(address)
            assert value == row["reset"], f"{row['name']} at {address:#x} is {value:#x} after reset, not {row['reset']:#x}"
            bench.cases += 1
    written: dict[int, int] = {}
    for row in rows:
        if row["access"] == "RO":
            assert await bench.bus.write(row["address"], 0xFFFFFFFF) == SLVERR, f"{row['name']} took a write"
        elif row["access"] == "RW" and (Mode.JPEG_ACT in _MODES or not row["name"].startswith("SHIFTS")):
            mask = sum(((1 << part["width"]) - 1) << part["offset"] for part in row["fields"])
            for address in _addresses(row):
                value = taken(registers.register(row["name"]), bench.rng)
                assert not await bench.bus.write(address, value), f"{row['name']} refused a write"
                written[address] = value & mask
    for row in rows:
        for address in _addresses(row):
            if address in written or row["access"] == "WO":
                value, expected = await bench.bus.read(address), written.get(address, 0)
                assert value == expected, f"{row['name']} at {address:#x} is {value:#x}, not {expected:#x}"
                bench.cases += 1


def _addresses(row: dict[str, Any]) -> list[int]:
    """Addresses of a register with several elements."""
    return [row["address"] + register_types.REGISTER_BYTES * index for index in range(row["count"])]


@bench_test(ArrayBench, pattern=list(PATTERNS))
async def mixed_jobs(bench: ArrayBench, pattern: str) -> None:
    """Jobs of all modes in random order, both directions at once, every port stalled at random by itself."""
    bench.stall(pattern)
    items = [_random_item(bench, mode) for mode in _MODES for _ in range(_MANY_JOBS if bench.full else 2)]
    await bench.play(await bench.open(), {channel: bench.rng.sample(items, len(items)) for channel in Channel})


@bench_test(ArrayBench, skip=not any(mode.has_scales for mode in _MODES), pattern=["full_rate", "coins"])
async def scales_in_registers(bench: ArrayBench, pattern: str) -> None:
    """Scales that the driver writes to registers, more of them than their queue holds."""
    bench.stall(pattern)
    shape = (2, 4 * register_types.SCALE_QUEUE, 2, 9)
    modes = [mode for mode in _MODES if mode.has_scales]
    items = [exchange(bench.config, bench.rng, shape, mode, "normal") for mode in modes * 2]
    await bench.play(await bench.open(scales_by_registers=True), dict.fromkeys(Channel, items))


@bench_test(ArrayBench, skip=len(_MODES) < 2)
async def every_mode_after_every_mode(bench: ArrayBench) -> None:
    """A walk that has every pair of modes, in each direction."""
    walk = _walk(list(_MODES))
    items = [exchange(bench.config, bench.rng, (1, 2, 8, 24), mode, "relu") for mode in walk]
    await bench.play(await bench.open(), dict.fromkeys(Channel, items))
    for before, after in pairwise(walk):
        bench.cover("cp_mode_after_mode", f"{after.label} after {before.label}")


def _walk(modes: list[Mode]) -> list[Mode]:
    """A sequence in which every mode follows every mode once: an Euler circuit of the complete graph with loops."""
    left = {mode: list(modes) for mode in modes}
    path, walk = [modes[0]], []
    while path:
        if left[path[-1]]:
            path.append(left[path[-1]].pop())
        else:
            walk.append(path.pop())
    return walk[::-1]


@bench_test(ArrayBench, mode=[mode.name.lower() for mode in _MODES])
async def odd_shapes(bench: ArrayBench, mode: str) -> None:
    """One value; widths 1 to 70; heights and channels that are primes.

    On quick the numbers of CDUs that are planned (1, 2, 3, 8) share the widths of each mode.
    """
    chosen = Mode[mode.upper()]
    share = (bench.config.cdus % 8 + chosen) % _SHARES
    widths = [width for width in range(1, _WIDTHS + 1) if bench.full or width % _SHARES == share]
    shapes = [(1, 1, 1, 1), (1, 3, 7, 13), (2, 5, 11, 3), (1, 7, 5, 9)]
    shapes += [(1, bench.rng.randint(1, 2), bench.rng.randint(1, 3 if bench.full else 9), width) for width in widths]
    items = [exchange(bench.config, bench.rng, shape, chosen, bench.rng.choice(KINDS)) for shape in shapes]
    await bench.play(await bench.open(), dict.fromkeys(Channel, items))
    if chosen.in_tiles:
        for shape, item in zip(shapes, items, strict=True):
            bench.cover("cp_width", f"W mod {TILE_COLUMNS} = {shape[-1] % TILE_COLUMNS}")
            blocks = (item.compression.row_beats - 1) % TILE_BLOCKS + 1
            bench.cover("cp_tile", f"{blocks} blocks in the last tile")


@bench_test(ArrayBench, mode=[mode.name.lower() for mode in _MODES if mode.has_scales])
async def many_channels(bench: ArrayBench, mode: str) -> None:
    """A layer of 2048 channels, every one with its own scale."""
    chosen = Mode[mode.upper()]
    shape = (1, _MANY_CHANNELS, 1, 8)
    items = [exchange(bench.config, bench.rng, shape, chosen, "relu")]
    await bench.play(await bench.open(), dict.fromkeys(Channel, items))


@bench_test(ArrayBench, skip=Mode.DIVISION not in _MODES)
async def statistics(bench: ArrayBench) -> None:
    """First passes of mode division, of every width of a tile and every kind of content, with jobs of all modes in between."""
    items = []
    for width, kind in product((5, 16, 20, 32, 41), KINDS):
        shape = (bench.rng.randint(1, 2), bench.rng.randint(1, 3), bench.rng.randint(1, 9), width)
        items.append(first_pass(exchange(bench.config, bench.rng, shape, Mode.DIVISION, kind)))
        if bench.rng.random() < 0.5:
            items.append(_random_item(bench, bench.rng.choice(_MODES)))
    await bench.play(await bench.open(), {Channel.COMPRESS: items})


@bench_test(ArrayBench, kind=list(KINDS))
async def contents(bench: ArrayBench, kind: str) -> None:
    """Every kind of content in every mode."""
    items = [exchange(bench.config, bench.rng, (1, 3, 8, 40), mode, kind) for mode in _MODES]
    await bench.play(await bench.open(), dict.fromkeys(Channel, items))
