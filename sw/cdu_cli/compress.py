"""``cdu compress`` and ``cdu decompress``: tensors in files to bitstreams and back."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from cdu_spec.affine import MAX_SEED
from cdu_spec.bitstream import STREAM_NAMES, Dtype
from cdu_spec.dqt import DQT_HELP
from cdu_tools.errors import UserError
from cdu_tools.files import check_target, write_parts

from cdu_cli.inputs import naming, read_packed
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
    whole,
    write_json,
)
from cdu_cli.restored_files import check_format, write_tensors
from cdu_cli.shown import Shown
from cdu_cli.tensor_compression import CASTS, TensorCompression, dtype_name
from cdu_cli.tensor_files import Tensors, read_tensors

if TYPE_CHECKING:
    from actcodec.codecs import Packed

_FILE_CODECS = ", ".join(STREAM_NAMES)


def register(app: typer.Typer) -> None:
    """Add the two commands."""
    app.command("compress")(compress)
    app.command("decompress")(decompress)


def compress(
    sources: Annotated[
        list[Path],
        source_argument("IN...", "Files .npy, .npz, .safetensors or .pt of float32, float16, bfloat16, or folders of them"),
    ],
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
    max_error: Annotated[
        float | None,
        typer.Option(help="Find --dqt or --bits for each tensor: the fewest bytes with no error above this."),
    ] = None,
    ratio: Annotated[
        float | None, typer.Option(help="Find --dqt or --bits for each tensor: the least error at this compression ratio.")
    ] = None,
    cast: Annotated[
        str | None, typer.Option(help=f"Convert all tensors (float64, integers, ...) first, to {', '.join(CASTS)}.")
    ] = None,
    keep: Annotated[
        bool, typer.Option("--keep", help="Keep exactly what the codec does not take: other shapes and number formats.")
    ] = False,
    report: Annotated[
        bool, typer.Option("--report", help="Restore each tensor and print largest error, RMS error, PSNR and ratio.")
    ] = False,
    backend: BackendOption = "auto",
    check: CheckOption = False,
    max_bytes: MaxBytesOption = None,
    json_file: JsonOption = None,
) -> None:
    """Compress tensors in files, lossy: every codec but bypass brings back values that are only near the original ones.

    One .npy array becomes one stream. Tensors with names, several files and folders become one container.

    Examples: cdu compress activations.npy activations.cdu --codec jpeg-act --dqt optH;
    cdu compress model.safetensors model.cdu --codec sfpr --report
    """
    from actcodec.codecs import CODEC_NAMES
    from actcodec.codecs.container import serialise
    from actcodec.codecs.option_search import Goal

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
    goal = None if max_error is None and ratio is None else Goal(max_error, ratio)
    each = TensorCompression(codec, options, codec_backend(backend, check), cast, keep, goal, report)
    tensors = read_tensors(sources, max_bytes)
    if any(target.exists() and target.samefile(path) for path in tensors.files if path.is_file()):
        raise UserError(f"{target} is read and written: write another file")
    if keep and not tensors.named:
        raise UserError(f"--keep needs a container: {sources[0]} holds one tensor without a name, which becomes a stream")
    with Shown() as shown:
        compressed = _Compressed(tensors, each, shown)
        shown.begin(f"compressing {', '.join(map(str, sources))}", len(compressed))
        parts = serialise(compressed) if tensors.named else (one.to_bytes() for one in compressed.values())
        write_parts(target, compressed.counted(parts))
    original = sum(about["bytes_original"] for about in compressed.about.values())
    if report or goal:
        for line in compressed.lines:
            print(line, file=sys.stderr)
    result = {"bytes_original": original, "bytes_compressed": compressed.size, "ratio": original / compressed.size}
    print(f"{target}: {compressed.size} bytes from {original}, ratio {result['ratio']:.2f}", file=sys.stderr)
    write_json(json_file, {**result, "tensors": compressed.about} if tensors.named else compressed.about[""])


class _Compressed(Mapping[str, "Packed"]):
    """Tensors that are loaded and compressed on access, so that one is in memory at a time."""

    def __init__(self, tensors: Tensors, each: TensorCompression, shown: Shown) -> None:
        self._tensors, self._each, self._shown = tensors, each, shown
        self.about: dict[str, dict[str, Any]] = {}  #: entries of --json of the tensors that were asked for
        self.lines: list[str] = []  #: their lines of --report
        self.size = 0  #: bytes that :meth:`counted` has passed on

    def __getitem__(self, name: str) -> Packed:
        """Compress and return a tensor; raise UserError that names it if it cannot be compressed."""
        tensor = self._tensors.loads[name]()
        only = self._tensors.files[0] if len(self._tensors.files) == 1 else None
        try:
            done = self._each.compress(tensor)
        except UserError as error:
            if not name:
                raise UserError(f"{only}: {error}") from None
            where = f"tensor {name!r}" if only is None else f"{only}: tensor {name!r}"
            advice = "" if self._each.keep or self._each.takes(tensor) else "; --keep keeps such tensors exactly"
            raise UserError(f"{where}: {error}{advice}") from None
        self.about[name] = done.as_json()
        self.lines.append(done.line(name or str(only)))
        self._shown.step()
        return done.packed

    def __iter__(self) -> Iterator[str]:
        """Iterate over names."""
        return iter(self._tensors.loads)

    def __len__(self) -> int:
        """Return the number of tensors."""
        return len(self._tensors.loads)

    def counted(self, parts: Iterable[bytes]) -> Iterator[bytes]:
        """Yield parts of the output and count their bytes."""
        for part in parts:
            self.size += len(part)
            yield part


def decompress(
    source: Annotated[Path, source_argument("IN.cdu", "A bitstream")],
    target: Annotated[
        Path, target_argument("OUT", "The file to write: .npz, .safetensors, .pt; otherwise .npy, or .npz for a container")
    ],
    backend: BackendOption = "auto",
    check: CheckOption = False,
    max_bytes: MaxBytesOption = None,
    json_file: JsonOption = None,
) -> None:
    """Decompress a bitstream file; every codec but bypass is lossy, so the values are only near the original ones.

    Example: cdu decompress activations.cdu activations.npy
    """
    check_target(target)
    chosen = codec_backend(backend, check)
    packed = read_packed(source, max_bytes)
    check_format(target, packed.container)
    tensors = {}
    about: dict[str, Any] = {}
    with Shown() as shown, naming(source):
        shown.begin(f"decompressing {source}", len(packed.streams))
        for name, entry in packed.tensors().items():
            tensors[name] = entry.decompress(chosen)
            dtype = entry.header.dtype
            about[name] = {
                "codec": entry.codec,
                "shape": list(entry.header.shape),
                "dtype": dtype.label if isinstance(dtype, Dtype) else dtype_name(dtype),
                "bytes_compressed": entry.nbytes,
            }
            shown.step()
        write_tensors(target, tensors, packed.container)
    write_json(json_file, {"tensors": about} if packed.container else about[""])
