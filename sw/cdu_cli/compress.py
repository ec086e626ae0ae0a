"""``cdu compress`` and ``cdu decompress``: the bitstream on files."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from cdu_spec.affine import MAX_SEED
from cdu_spec.bitstream import STREAM_NAMES, Dtype
from cdu_spec.dqt import DQT_HELP
from cdu_tools.errors import UserError
from cdu_tools.files import check_target, write_whole

from cdu_cli.inputs import read_array, read_packed
from cdu_cli.options import (
    BackendOption,
    BitsOption,
    CheckOption,
    HuffmanOption,
    JsonOption,
    MaxBytesOption,
    RangeOption,
    SOption,
    codec_backend,
    given,
    source_argument,
    target_argument,
    waiting,
    whole,
    write_json,
)

_FILE_CODECS = ", ".join(STREAM_NAMES)


def register(app: typer.Typer) -> None:
    """Add the two commands."""
    app.command("compress")(compress)
    app.command("decompress")(decompress)


def compress(
    source: Annotated[Path, source_argument("IN.npy", "Array of float32 or float16")],
    target: Annotated[Path, target_argument("OUT.cdu", "The bitstream to write")],
    codec: Annotated[str, typer.Option(help=f"Codec: {_FILE_CODECS}.")] = "jpeg-act",
    dqt: Annotated[str | None, typer.Option(help=f"Quantisation table of jpeg-act, jpeg-gmc, jpeg-base: {DQT_HELP}.")] = None,
    rec: Annotated[
        float | None,
        typer.Option(
            help="Reconstruction point of jpeg-act (default 0) and jpeg-gmc (default 0.375) in steps: 0 to 0.5 in eighths."
        ),
    ] = None,
    scale: SOption = None,
    bits: BitsOption = None,
    range_of: RangeOption = None,
    rounding: Annotated[
        str | None,
        typer.Option(
            help="jpeg-act, jpeg-gmc: trunc (default) or half_away; jpeg-base: the other way round; affine codecs: stochastic "
            "(default) or nearest."
        ),
    ] = None,
    huffman: HuffmanOption = None,
    seed: Annotated[int | None, typer.Option(help="Seed of stochastic rounding (default 0).", min=0, max=MAX_SEED)] = None,
    nonfinite: Annotated[str | None, typer.Option(help="NaN and infinity: raise (default) or saturate.")] = None,
    backend: BackendOption = "torch",
    check: CheckOption = False,
    max_bytes: MaxBytesOption = None,
    json_file: JsonOption = None,
) -> None:
    """Compress an array into a bitstream file.

    Example: cdu compress activations.npy activations.cdu --codec jpeg-act --dqt optH
    """
    import actcodec
    import torch
    from actcodec.codecs import CODEC_NAMES

    check_target(target)
    if codec in set(CODEC_NAMES) - set(STREAM_NAMES):
        raise UserError(f"codec {codec!r} has no bitstream: use {_FILE_CODECS}")
    options = given(
        dqt=dqt,
        rec=rec,
        S=scale,
        bits=whole(bits),
        range=range_of,
        rounding=rounding,
        huffman=huffman,
        seed=seed,
        nonfinite=nonfinite,
    )
    chosen = actcodec.codec(codec, backend=codec_backend(backend, check), **options)
    array = read_array(source, max_bytes)
    with waiting(f"compressing {source}"):
        packed = chosen.compress(torch.from_numpy(array))
        write_whole(target, packed.to_bytes())
    ratio = array.nbytes / packed.nbytes
    print(f"{target}: {packed.nbytes} bytes from {array.nbytes}, ratio {ratio:.2f}", file=sys.stderr)
    result: dict[str, Any] = {
        "codec": codec,
        "shape": list(array.shape),
        "dtype": str(array.dtype),
        "bytes_original": array.nbytes,
        "bytes_compressed": packed.nbytes,
        "ratio": ratio,
    }
    write_json(json_file, result)


def decompress(
    source: Annotated[Path, source_argument("IN.cdu", "A bitstream")],
    target: Annotated[Path, target_argument("OUT.npy", "The array to write")],
    backend: BackendOption = "torch",
    check: CheckOption = False,
    max_bytes: MaxBytesOption = None,
    json_file: JsonOption = None,
) -> None:
    """Decompress a bitstream file into an array.

    Example: cdu decompress activations.cdu activations.npy
    """
    import numpy as np

    check_target(target)
    chosen = codec_backend(backend, check)
    with waiting(f"decompressing {source}"):
        packed = read_packed(source, max_bytes)
        try:
            values = packed.decompress(chosen)
        except UserError as error:
            raise UserError(f"{source}: {error}") from None
    if packed.header.dtype is Dtype.BF16:
        print(f"note: numpy has no bfloat16: {target} holds the same values as float32", file=sys.stderr)
        values = values.float()
    array = values.contiguous().numpy()
    head = io.BytesIO()
    np.lib.format.write_array_header_1_0(head, np.lib.format.header_data_from_array_1_0(array))
    write_whole(target, head.getvalue(), array.reshape(-1).view(np.uint8).data)
    result: dict[str, Any] = {
        "codec": packed.codec,
        "shape": list(packed.header.shape),
        "dtype": packed.header.dtype.label,
        "bytes_compressed": packed.nbytes,
    }
    write_json(json_file, result)
