"""``cdu export-jpeg``: activations as an image that any viewer opens."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from cdu_spec.dqt import DQT_HELP
from cdu_tools.errors import UserError
from cdu_tools.files import check_target, write_whole

from cdu_cli.input_files import read_either
from cdu_cli.options import (
    HuffmanOption,
    JsonOption,
    MaxBytesOption,
    SOption,
    given,
    source_argument,
    target_argument,
    waiting,
    write_json,
)

if TYPE_CHECKING:
    from actcodec.codecs import Compressed, JpegBaseCompressed


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command("export-jpeg", epilog="Example: cdu export-jpeg activations.npy activations.jpg --dqt image80")(export_jpeg)


def export_jpeg(
    source: Annotated[
        Path,
        source_argument("IN.npy|IN.cdu", "Array of float32 or float16, or a bitstream of jpeg-base, jpeg-act or jpeg-gmc"),
    ],
    target: Annotated[Path, target_argument("OUT.jpg", "The image to write")],
    rows: Annotated[
        str | None,
        typer.Option(metavar="BEGIN:END", help="Rows of the matrix (N*C*H, W); BEGIN is a multiple of 8. Default: all."),
    ] = None,
    dqt: Annotated[str | None, typer.Option(help=f"Of an array: quantisation table, {DQT_HELP}.")] = None,
    scale: SOption = None,
    rounding: Annotated[str | None, typer.Option(help="Of an array: half_away (default) or trunc.")] = None,
    huffman: HuffmanOption = None,
    nonfinite: Annotated[str | None, typer.Option(help="Of an array: NaN and infinity, raise (default) or saturate.")] = None,
    max_bytes: MaxBytesOption = None,
    json_file: JsonOption = None,
) -> None:
    """Write the blocks of compressed activations as a grayscale JPEG: the maps one below the other, zero in middle grey."""
    import numpy as np
    import torch
    from actcodec.codecs.jpeg.jpeg_base_codec import JpegBaseCodec
    from actcodec.codecs.jpeg.jpeg_image import jpeg_image

    check_target(target)
    chosen = _rows(rows)
    options = given(dqt=dqt, S=scale, rounding=rounding, huffman=huffman, nonfinite=nonfinite)
    with waiting(f"exporting {source}"):
        content = read_either(source, max_bytes)
        packed: Compressed | JpegBaseCompressed
        if isinstance(content, np.ndarray):
            packed = JpegBaseCodec(**options).compress(torch.from_numpy(content))
        elif options:
            raise UserError(f"{source} is no .npy array: --dqt, --S, --rounding, --huffman and --nonfinite go with one")
        else:
            packed = content
        try:
            image = jpeg_image(packed, chosen)
        except UserError as error:
            raise UserError(f"{source}: {error}") from None
        write_whole(target, image)
    begin, end = chosen or (0, packed.header.view.rows)
    height, width = end - begin, packed.header.view.columns
    print(f"{target}: {height} x {width} samples in {len(image)} bytes", file=sys.stderr)
    write_json(json_file, {"codec": packed.codec, "height": height, "width": width, "bytes": len(image)})


def _rows(text: str | None) -> tuple[int, int] | None:
    """Both numbers of ``--rows``."""
    if text is None:
        return None
    match = re.fullmatch(r"(\d{1,18}):(\d{1,18})", text, re.ASCII)
    if match is None:
        raise UserError(f"--rows {text!r} is not of the form BEGIN:END, as in 0:4096")
    return int(match[1]), int(match[2])
