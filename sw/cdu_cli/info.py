"""``cdu info``: the content of a bitstream file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from cdu_spec import dqt
from cdu_spec.affine import AffineSettings
from cdu_spec.bitstream import COEFFICIENT_ORDER, CRC_BYTES
from cdu_spec.coding import ShiftCoding
from cdu_spec.huffman import STANDARD
from cdu_spec.jpeg import ZIGZAG
from cdu_spec.modes import Mode
from cdu_spec.reconstruction import STEP_POINTS
from cdu_tools.mapped import MappedFiles
from cdu_tools.texts import extents

from cdu_cli.input_files import naming, read_packed
from cdu_cli.options import JsonOption, MaxBytesOption, source_argument, write_json
from cdu_cli.tensor_compression import printed, stored_dtype

if TYPE_CHECKING:
    from actcodec.codecs.container import Entry

#: Names of tables that ``cdu info`` looks for. Large steps come first: shifts take uniform-4 for uniform-8.
_TABLES = (
    *(f"uniform-{step}" for step in range(dqt.MAX_DIVISOR, 0, -1)),
    *sorted(dqt.NAMED),
    *(f"image{quality}" for quality in range(1, 101)),
)


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command("info")(info)


def info(
    source: Annotated[Path, source_argument("FILE.cdu", "A bitstream")],
    max_bytes: MaxBytesOption = None,
    json_file: JsonOption = None,
) -> None:
    """Print the codec, options, shape, version, checksum and bytes by part of each tensor in a bitstream file.

    Checksums are verified; nothing is decompressed. Example: cdu info activations.cdu
    """
    packed = read_packed(source, max_bytes, MappedFiles())
    with naming(source):
        about = {name: _about(entry, packed.streams[name]) for name, entry in packed.tensors().items()}
    if packed.container:
        typer.echo(f"{source}: container of {len(about)} tensor{'' if len(about) == 1 else 's'} in {packed.size} bytes")
    for name, one in about.items():
        _print(name or str(source), one)
    write_json(json_file, {"bytes_compressed": packed.size, "tensors": about} if packed.container else about[""])


def _about(entry: Entry, stream: bytes | memoryview) -> dict[str, Any]:
    """Return the description of one tensor, as --json writes it."""
    header = entry.header
    return {
        "codec": entry.codec,
        "options": _options(entry),
        "shape": list(header.shape),
        "dtype": stored_dtype(header.dtype),
        "version": header.version,
        "checksum": f"{int.from_bytes(stream[-CRC_BYTES:], 'little'):08x}",
        "bytes_original": header.tensor_bytes,
        "bytes_compressed": len(stream),
        "ratio": header.tensor_bytes / len(stream),
        "bytes_by_part": {part: size for part, size in header.sections.items() if size},
    }


def _options(entry: Entry) -> dict[str, Any]:
    """Return the options that a stream records: all but the scale S and the rounding."""
    from actcodec.codecs import Compressed, JpegBaseCompressed

    if isinstance(entry, JpegBaseCompressed):
        places = [0] * len(ZIGZAG)
        for place, divisor in zip(ZIGZAG, entry.header.divisors, strict=True):
            places[place] = divisor
        table = _table(places, dqt.divisors)
        huffman = "standard" if entry.header.tables == STANDARD else "optimal"
        return {"dqt": table, "huffman": huffman, "const_bits": entry.header.const_bits, "pass1_bits": entry.header.pass1_bits}
    if not isinstance(entry, Compressed):
        return {}
    header = entry.header
    if isinstance(header.how, ShiftCoding):
        shifts = [0] * len(COEFFICIENT_ORDER)
        for place, shift in zip(COEFFICIENT_ORDER, entry.shifts, strict=True):
            shifts[place] = shift
        named = _table(shifts, dqt.shifts)
        table = named if isinstance(named, str) else [1 << shift for shift in shifts]
        rec = header.how.point / STEP_POINTS
        return {"dqt": table, "rec": rec, "const_bits": header.const_bits, "pass1_bits": header.pass1_bits}
    if not isinstance(header.how, AffineSettings):
        return {}
    options: dict[str, Any] = {"bits": header.how.bits, "step_log2": header.how.step_log2}
    if header.mode is Mode.DIVISION:
        options["range"] = "block" if header.how.block_range else "channel"
    return options


def _table(numbers: Sequence[int], of: Callable[[str], Sequence[int]]) -> str | list[int]:
    """Return the name of a table for --dqt, or its numbers row after row if it has no name."""
    for name in _TABLES:
        try:
            if list(of(name)) == list(numbers):
                return name
        except ValueError:  # a uniform table that shifts do not have
            continue
    return list(numbers)


def _print(name: str, about: dict[str, Any]) -> None:
    """Print three lines about one tensor."""
    options = "".join(f", {option} {value}" for option, value in about["options"].items())
    parts = ", ".join(f"{part} {size}" for part, size in about["bytes_by_part"].items())
    typer.echo(f"{printed(name)}: {about['codec']}{options}")
    typer.echo(
        f"  {about['dtype']} {extents(about['shape'])}, version {about['version']}, checksum {about['checksum']} (right)"
    )
    typer.echo(f"  {about['bytes_compressed']} bytes from {about['bytes_original']}, ratio {about['ratio']:.2f}: {parts}")
