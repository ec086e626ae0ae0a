"""``cdu compress`` and ``cdu decompress``: the bitstream on files."""

from __future__ import annotations

import io
import sys
import tokenize
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from cdu_spec.affine import MAX_SEED
from cdu_spec.bitstream import STREAM_NAMES, Dtype
from cdu_spec.dqt import DQT_HELP
from cdu_spec.errors import UserError
from cdu_spec.files import write_whole
from rich.console import Console

from cdu_cli.options import (
    BackendOption,
    BitsOption,
    CheckOption,
    HuffmanOption,
    JsonOption,
    RangeOption,
    codec_backend,
    whole,
    write_json,
)

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

_FILE_CODECS = ", ".join(STREAM_NAMES)


def register(app: typer.Typer) -> None:
    """Add the two commands."""
    app.command("compress")(compress)
    app.command("decompress")(decompress)


def compress(
    source: Annotated[Path, typer.Argument(metavar="IN.npy", help="Array of float32 or float16.")],
    target: Annotated[Path, typer.Argument(metavar="OUT.cdu", help="The bitstream to write.")],
    codec: Annotated[str, typer.Option(help=f"Codec: {_FILE_CODECS}.")] = "jpeg-act",
    dqt: Annotated[str | None, typer.Option(help=f"Quantisation table of jpeg-act, jpeg-base: {DQT_HELP}.")] = None,
    scale_s: Annotated[float | None, typer.Option("--scale-S", help="S of SFPR, positive (default 1.125).")] = None,
    bits: BitsOption = None,
    range_of: RangeOption = None,
    rounding: Annotated[
        str | None,
        typer.Option(
            help="jpeg-act: trunc (default) or half_away; jpeg-base: the other way round; affine codecs: stochastic (default) "
            "or nearest."
        ),
    ] = None,
    huffman: HuffmanOption = None,
    seed: Annotated[int | None, typer.Option(help="Seed of stochastic rounding (default 0).", min=0, max=MAX_SEED)] = None,
    nonfinite: Annotated[str | None, typer.Option(help="NaN and infinity: raise (default) or saturate.")] = None,
    backend: BackendOption = "torch",
    check: CheckOption = False,
    json_file: JsonOption = None,
) -> None:
    """Compress an array into a bitstream file.

    Example: cdu compress activations.npy activations.cdu --codec jpeg-act --dqt optH
    """
    import actcodec
    import torch
    from actcodec.codecs import CODEC_NAMES

    if codec in set(CODEC_NAMES) - set(STREAM_NAMES):
        raise UserError(f"codec {codec!r} has no bitstream: use {_FILE_CODECS}")
    given = {
        "dqt": dqt,
        "S": scale_s,
        "bits": whole(bits),
        "range": range_of,
        "rounding": rounding,
        "huffman": huffman,
        "seed": seed,
        "nonfinite": nonfinite,
        "backend": codec_backend(backend, check),
    }
    chosen = actcodec.codec(codec, **{name: value for name, value in given.items() if value is not None})
    array = load_array(source)
    with Console(stderr=True).status(f"compressing {source}"):
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
    source: Annotated[Path, typer.Argument(metavar="IN.cdu", help="A bitstream.")],
    target: Annotated[Path, typer.Argument(metavar="OUT.npy", help="The array to write.")],
    backend: BackendOption = "torch",
    check: CheckOption = False,
    json_file: JsonOption = None,
) -> None:
    """Decompress a bitstream file into an array.

    Example: cdu decompress activations.cdu activations.npy
    """
    import actcodec
    import numpy as np

    chosen = codec_backend(backend, check)
    stream = read_stream(source)
    try:
        with Console(stderr=True).status(f"decompressing {source}"):
            packed = actcodec.from_bytes(stream)
            values = packed.decompress(chosen)
    except UserError as error:
        raise UserError(f"{source}: {error}") from None
    if packed.header.dtype is Dtype.BF16:
        print(f"note: numpy has no bfloat16: {target} holds the same values as float32", file=sys.stderr)
        values = values.float()
    file = io.BytesIO()
    np.save(file, values.numpy())
    write_whole(target, file.getvalue())
    result: dict[str, Any] = {
        "codec": packed.codec,
        "shape": list(packed.header.shape),
        "dtype": packed.header.dtype.label,
        "bytes_compressed": packed.nbytes,
    }
    write_json(json_file, result)


def read_stream(path: Path) -> bytes:
    """The bytes of a file; UserError when there is none."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}") from None


def load_array(path: Path) -> npt.NDArray[np.generic]:
    """The float array of an .npy file in native byte order; UserError says what else it is."""
    import numpy as np

    try:
        with path.open("rb") as file:
            array = np.lib.format.read_array(file, allow_pickle=False)
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror or error}") from None
    except (ValueError, EOFError, SyntaxError, tokenize.TokenError, MemoryError) as error:
        reason = "it holds Python objects" if "Object arrays" in str(error) else "it is no whole .npy file"
        raise UserError(f"cannot read {path}: {reason}; use a file that numpy.save wrote from a float array") from None
    native = array.dtype.newbyteorder("=")
    if native not in (np.float32, np.float16):
        raise UserError(f"{path} holds {native}: use float32 or float16")
    return np.ascontiguousarray(array, dtype=native)
