"""Stimulus and expected bytes of both halves of a unit, for a user's own test bench."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import cycle, product
from pathlib import Path
from random import Random
from typing import Any

from actcodec.backends.job import DTYPES
from cdu.delivery import generator
from cdu_spec.config import CduConfig
from cdu_spec.geometry import LANES
from cdu_spec.modes import Mode
from cdu_spec.mx import MX_FORMATS, MxSettings, ScaleRule
from cdu_spec.port_fields import pack
from cdu_tools.files import write_whole

from cdu_verif.content.payloads import BANKS, counted_words, descriptor, float_bytes, scale_words
from cdu_verif.content.tensors import KINDS, TABLES, Exchange, exchange, first_pass, of_tensor, tensor

_SHAPES = ((1, 1, 1, 1), (2, 3, 8, 32), (1, 3, 7, 33), (1, 2, 5, 70), (1, 4, 16, 16))
_FORMAT = (
    "Text for $readmemh: one payload of a stream per line, hexadecimal, most significant digit first, width as in `streams`. "
    "A stream's file holds all jobs one after the other; each job says where its transfers begin and how many there are. "
    "In `fields`, `count` is the number of elements of a field, the first one lowest. The field `count` of a transfer is the "
    "number of its valid bytes in a payload, and of its valid rows of 8 values in streams of values. "
    "Values are those of the matrix in section 2 of bitstream.md, and of its padding: in jpeg-act, division and actnn strips "
    "of 8 rows, in a strip tiles of 32 columns (the last may be narrower), in a tile row by row; in other modes row by row. "
    "Jobs with `statistics` 1 in `how` are first passes of division: their payload is statistics, and a Decompressor has none. "
    "`shift_tables` has the content of the port `shifts`, 64 entries of 3 bits per bank in the order of the payload."
)


def write(config: CduConfig, modes: Sequence[Mode], seed: int, folder: Path) -> dict[str, Any]:
    """Write the files into an existing folder and return the content of vectors.json.

    ``compressor_STREAM.hex`` and ``decompressor_STREAM.hex`` for the streams job, scales, i (stimulus) and o (expected), and
    ``vectors.json``: widths, bit fields, and the jobs.
    """
    rng = Random(f"vectors {seed}")
    items = [item for mode in modes for item in _items(config, rng, mode)]
    tables = list(dict.fromkeys(item.compression.shifts for item in items if item.compression.shifts))
    content: dict[str, Any] = {
        "config": config.to_dict(),
        "seed": seed,
        "format": _FORMAT,
        "shift_tables": tables,
        "halves": {},
    }
    for half in ("compressor", "decompressor"):
        manifest = generator.kept(config, half).manifest
        ports = {port["name"]: port for port in manifest["ports"]}
        through = items if half == "compressor" else [item for item in items if len(item.restored)]
        content["halves"][half] = _half(half, ports, through, tables, folder)
    write_whole(folder / "vectors.json", json.dumps(content, indent=2) + "\n")
    return content


def _items(config: CduConfig, rng: Random, mode: Mode) -> list[Exchange]:
    """Return tensors of a mode: in division with a first pass of each, in mx with every format and rule."""
    shapes_and_kinds = list(zip(_SHAPES, rng.sample(KINDS, len(_SHAPES)), strict=True))
    if mode is Mode.MX:
        ways = zip(product(MX_FORMATS, ScaleRule), cycle(shapes_and_kinds), strict=False)
        return [_mx_item(config, rng, MxSettings(*way), *what) for way, what in ways]
    items = [exchange(config, rng, shape, mode, kind, TABLES[:BANKS]) for shape, kind in shapes_and_kinds]
    return items + [first_pass(item) for item in items] if mode is Mode.DIVISION else items


def _mx_item(config: CduConfig, rng: Random, how: MxSettings, shape: tuple[int, ...], kind: str) -> Exchange:
    x = tensor(rng, shape, kind, DTYPES[config.dtype])
    return of_tensor(config, rng, x, Mode.MX, f"{kind}, {how.format} {how.rule.value}", how=how)


def _half(
    half: str, ports: Mapping[str, Mapping[str, Any]], items: Sequence[Exchange], tables: Sequence[Any], folder: Path
) -> dict[str, Any]:
    lines: dict[str, list[int]] = {name: [] for name in ("job", "scales", "i", "o")}
    jobs = []
    for item in items:
        bank = tables.index(item.compression.shifts) if item.compression.shifts else 0
        parts = transfers(half, ports, item, bank)
        entry: dict[str, Any] = {"name": item.name, "payload_bytes": len(item.payload), **descriptor(item.compression, bank)}
        for stream, words in parts.items():
            entry[stream] = {"first": len(lines[stream]), "count": len(words)}
            lines[stream] += words
        jobs.append(entry)
    streams = {}
    for stream, words in lines.items():
        port = ports[f"{stream}__payload"]
        digits = -(-port["width"] // 4)
        file = f"{half}_{stream}.hex"
        write_whole(folder / file, "".join(f"{word:0{digits}x}\n" for word in words))
        direction = "expected" if stream == "o" else "stimulus"
        streams[stream] = {
            "file": file,
            "use": direction,
            "width": port["width"],
            "fields": port["fields"],
            "lines": len(words),
        }
    return {"streams": streams, "jobs": jobs}


def transfers(half: str, ports: Mapping[str, Mapping[str, Any]], item: Exchange, bank: int) -> dict[str, list[int]]:
    """Return the payloads of all streams in one job."""
    compresses = half == "compressor"
    job = item.compression if compresses else item.decompression
    values = item.beats if compresses else item.restored
    beat_bytes = job.dtype.bits // 8 * LANES
    packed_port, value_port = ("o", "i") if compresses else ("i", "o")
    return {
        "job": [pack(dict(ports["job__payload"]), descriptor(job, bank))],
        "scales": scale_words(ports["scales__payload"], job) if job.mode.has_scales else [],
        packed_port: counted_words(ports[f"{packed_port}__payload"], item.payload),
        value_port: counted_words(ports[f"{value_port}__payload"], float_bytes(values), beat_bytes),
    }
