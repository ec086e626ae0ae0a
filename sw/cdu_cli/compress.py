"""``cdu compress`` and ``cdu decompress``: tensors in files to bitstreams and back."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from cdu_spec.affine import MAX_SEED
from cdu_spec.dqt import DQT_HELP
from cdu_spec.modes import STREAM_NAMES
from cdu_tools.errors import UserError
from cdu_tools.files import STANDARD_INPUT, STANDARD_OUTPUT, check_target, make_folder, scratch_folder, write_parts
from cdu_tools.mapped import MappedFiles, give_freed_blocks_back

from cdu_cli.input_files import naming, read_packed
from cdu_cli.option_fields import with_options
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
    in_pieces_where_it_can,
    source_argument,
    target_argument,
    write_json,
)
from cdu_cli.progress import ProgressBar
from cdu_cli.restored_files import check_format, write_tensors
from cdu_cli.tensor_compression import CASTS, TensorCompression, stored_dtype
from cdu_cli.tensor_files import SUFFIXES, Tensors, distinct_files, read_tensors

if TYPE_CHECKING:
    from actcodec.backends.backend import Backend
    from actcodec.codecs import Packed
    from actcodec.codecs.container import Entry
    from torch import Tensor

_FILE_CODECS = ", ".join(STREAM_NAMES)
#: Ending of bitstreams in a folder.
_SUFFIX = ".cdu"


@dataclass(frozen=True)
class FileCodecOptions:
    """Options of the codec of ``cdu compress``, by their names in the codec."""

    dqt: Annotated[str | None, typer.Option(help=f"Quantisation table of jpeg-act, jpeg-gmc, jpeg-base: {DQT_HELP}.")] = None
    rec: Annotated[
        float | None,
        typer.Option(
            help="Reconstruction point of jpeg-act (default 0) and jpeg-gmc (default 0.375) in steps: 0 to 0.5 in eighths."
        ),
    ] = None
    S: SOption = None
    bits: BitsOption = None
    range: RangeOption = None
    rounding: Annotated[
        str | None,
        typer.Option(
            help="jpeg-act, jpeg-gmc: trunc (default) or half_away; jpeg-base: the other way round; affine codecs: stochastic "
            "(default) or nearest."
        ),
    ] = None
    huffman: HuffmanOption = None
    seed: Annotated[
        int | None,
        typer.Option(help="Number from which tensors get their seeds of stochastic rounding (default 0).", min=0, max=MAX_SEED),
    ] = None
    nonfinite: Annotated[str | None, typer.Option(help="NaN and infinity: raise (default) or saturate.")] = None


@dataclass(frozen=True, kw_only=True)
class CompressOptions:
    """Arguments and options of ``cdu compress``."""

    sources: Annotated[
        list[Path] | None,
        source_argument("IN", "Files .npy, .npz, .safetensors or .pt of float32, float16, bfloat16, or folders of them"),
    ] = None
    target: Annotated[Path | None, target_argument("OUT.cdu", "The bitstream to write; another input with -o")] = None
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="Folder for a bitstream of each file (made when missing).", metavar="DIRECTORY"),
    ] = None
    codec: Annotated[str, typer.Option(help=f"Codec: {_FILE_CODECS}.")] = "jpeg-act"
    codec_options: FileCodecOptions
    max_error: Annotated[
        float | None,
        typer.Option(help="Find --dqt or --bits for each tensor: the fewest bytes with no error above this."),
    ] = None
    ratio: Annotated[
        float | None, typer.Option(help="Find --dqt or --bits for each tensor: the least error at this compression ratio.")
    ] = None
    cast: Annotated[
        str | None, typer.Option(help=f"Convert all tensors (float64, integers, ...) first, to {', '.join(CASTS)}.")
    ] = None
    keep: Annotated[
        bool, typer.Option("--keep", help="Keep exactly what the codec does not take: other shapes and number formats.")
    ] = False
    report: Annotated[
        bool, typer.Option("--report", help="Restore each tensor and print largest error, RMS error, PSNR and ratio.")
    ] = False
    backend: BackendOption = "auto"
    check: CheckOption = False
    max_bytes: MaxBytesOption = None
    json_file: JsonOption = None


def register(app: typer.Typer) -> None:
    """Add the two commands."""
    app.command("compress")(with_options(CompressOptions, compress))
    app.command("decompress")(decompress)


def compress(options: CompressOptions) -> None:
    """Compress tensors in files, lossy: every codec but bypass brings back values that are only near the original ones.

    One .npy array becomes one stream. Tensors with names, several files and folders become one container; with -o each file
    becomes one of its own.

    Examples: cdu compress activations.npy activations.cdu --codec jpeg-act --dqt optH;
    cdu compress model.safetensors model.cdu --codec sfpr --report
    """
    from actcodec.codecs import CODEC_NAMES
    from actcodec.codecs.option_search import Goal

    codec, output = options.codec, options.output
    inputs, target = _inputs_and_target(options.sources, options.target, output, "cdu compress")
    if codec in set(CODEC_NAMES) - set(STREAM_NAMES):
        raise UserError(f"codec {codec!r} has no bitstream: use {_FILE_CODECS}")
    goal = None if options.max_error is None and options.ratio is None else Goal(options.max_error, options.ratio)
    give_freed_blocks_back()
    files, shown = MappedFiles(_scratch_folder(target, output)), ProgressBar()
    backend = codec_backend(options.backend, options.check)
    backend = in_pieces_where_it_can(backend, options.backend, files, ProgressBar(shown))
    each = TensorCompression(
        codec, given(**vars(options.codec_options)), backend, options.cast, options.keep, goal, options.report
    )
    if output is None:
        assert target is not None, "without a folder there is a target"
        write_json(options.json_file, _compress(inputs, target, each, options.max_bytes, files, shown))
        return
    found = distinct_files(inputs, SUFFIXES)
    made = {}
    for path, name in found:
        one = output / f"{name}{_SUFFIX}"
        make_folder(one.parent)
        made[str(one)] = _compress([path], one, each, options.max_bytes, files, shown)
    write_json(options.json_file, {"files": made})


def _inputs_and_target(
    sources: Sequence[Path] | None, target: Path | None, output: Path | None, command: str
) -> tuple[list[Path], Path | None]:
    """Return files to read, and the file to write; there is none where results go to a folder."""
    inputs = list(sources or [])
    if output is not None and target is not None:
        inputs.append(STANDARD_INPUT if target == STANDARD_OUTPUT else target)
        target = None
    if not inputs:
        given = "no file is" if target is None else f"{target} alone is"
        raise UserError(
            f"{given} named: name a file to read and a file to write, or a folder to write with -o; "
            f"`{command} --help` says what there is"
        )
    if target is not None:
        check_target(target)
    return inputs, target


def _scratch_folder(target: Path | None, output: Path | None) -> Path | None:
    if output is not None:
        return make_folder(output)
    assert target is not None, "without a folder there is a target"
    return scratch_folder(target)


def _compress(
    sources: Sequence[Path],
    target: Path,
    each: TensorCompression,
    max_bytes: int | None,
    files: MappedFiles,
    shown: ProgressBar,
) -> dict[str, Any]:
    """Compress files to one bitstream, and return what --json writes."""
    from actcodec.codecs.container import serialise, stream_parts

    tensors = read_tensors(sources, max_bytes, files)
    if any(target.exists() and target.samefile(path) for path in tensors.files if path.is_file()):
        raise UserError(f"{target} is read and written: write another file")
    if each.keep and not tensors.named:
        raise UserError(f"--keep needs a container: {sources[0]} holds one tensor without a name, which becomes a stream")
    with shown:
        compressed = _Compressed(tensors, each, shown)
        shown.begin(f"compressing {', '.join(map(str, sources))}", len(compressed))
        streams = (part for one in compressed.values() for part in stream_parts(one))
        parts = serialise(compressed) if tensors.named else streams
        write_parts(target, compressed.counted(parts))
    original = sum(about["bytes_original"] for about in compressed.about.values())
    if each.report or each.goal:
        for line in compressed.lines:
            print(line, file=sys.stderr)
    result = {"bytes_original": original, "bytes_compressed": compressed.size, "ratio": original / compressed.size}
    print(f"{target}: {compressed.size} bytes from {original}, ratio {result['ratio']:.2f}", file=sys.stderr)
    return {**result, "tensors": compressed.about} if tensors.named else compressed.about[""]


class _Compressed(Mapping[str, "Packed"]):
    """Tensors that are loaded and compressed on access, so that one is in memory at a time."""

    def __init__(self, tensors: Tensors, each: TensorCompression, shown: ProgressBar) -> None:
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
            advice = "; --keep keeps such tensors exactly" if self._each.would_keep(tensor) else ""
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

    def counted(self, parts: Iterable[bytes | memoryview]) -> Iterator[bytes | memoryview]:
        """Yield parts of the output and count their bytes; what was read of mapped files leaves the memory after each."""
        for part in parts:
            self.size += len(part)
            yield part
            self._each.backend.release()


def decompress(
    sources: Annotated[
        list[Path] | None, source_argument("IN.cdu", "A bitstream; with -o several, and folders of files .cdu")
    ] = None,
    target: Annotated[
        Path | None,
        target_argument(
            "OUT", "The file to write: .npz, .safetensors, .pt; otherwise .npy, or .npz for a container; another input with -o"
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            help="Folder for an .npy, or .npz for a container, of each file (made when missing).",
            metavar="DIRECTORY",
        ),
    ] = None,
    backend: BackendOption = "auto",
    check: CheckOption = False,
    max_bytes: MaxBytesOption = None,
    json_file: JsonOption = None,
) -> None:
    """Decompress a bitstream file; every codec but bypass is lossy, so the values are only near the original ones.

    Example: cdu decompress activations.cdu activations.npy
    """
    inputs, target = _inputs_and_target(sources, target, output, "cdu decompress")
    give_freed_blocks_back()
    files, shown = MappedFiles(_scratch_folder(target, output)), ProgressBar()
    chosen = in_pieces_where_it_can(codec_backend(backend, check), backend, files, ProgressBar(shown))
    if output is None:
        if len(inputs) > 1:
            raise UserError(f"{len(inputs)} files are restored to a folder: give one with -o")
        assert target is not None, "without a folder there is a target"
        write_json(json_file, _decompress(inputs[0], target, chosen, max_bytes, files, shown)[1])
        return
    found = distinct_files(inputs, (_SUFFIX,))
    made = {}
    for path, name in found:
        make_folder((output / name).parent)
        one, about = _decompress(path, output / name, chosen, max_bytes, files, shown, add_ending=True)
        made[str(one)] = about
    write_json(json_file, {"files": made})


def _decompress(
    source: Path,
    target: Path,
    backend: Backend,
    max_bytes: int | None,
    files: MappedFiles,
    shown: ProgressBar,
    add_ending: bool = False,
) -> tuple[Path, dict[str, Any]]:
    """Restore a bitstream to a file, whose ending may be left to what it holds; return the file, and what --json writes."""
    packed = read_packed(source, max_bytes, files)
    if add_ending:
        target = target.with_name(f"{target.name}{'.npz' if packed.container else '.npy'}")
    check_format(target, packed.container)
    with shown, naming(source):
        shown.begin(f"decompressing {source}", len(packed.streams))
        restored = _Restored(packed.tensors(), backend, shown)
        write_tensors(target, restored, packed.container, files)
    about = {name: _about(entry) for name, entry in restored.entries.items()}
    return target, {"tensors": about} if packed.container else about[""]


class _Restored(Mapping[str, "Tensor"]):
    """Tensors that are decompressed on access, so that one is in memory at a time."""

    def __init__(self, entries: Mapping[str, Entry], backend: Backend, shown: ProgressBar) -> None:
        self.entries = entries
        self._backend, self._shown = backend, shown

    def __getitem__(self, name: str) -> Tensor:
        """Decompress a tensor."""
        tensor = self.entries[name].decompress(self._backend)
        self._shown.step()
        return tensor

    def __iter__(self) -> Iterator[str]:
        """Iterate over names."""
        return iter(self.entries)

    def __len__(self) -> int:
        """Return the number of tensors."""
        return len(self.entries)


def _about(entry: Entry) -> dict[str, Any]:
    """Return the description of a restored tensor, as --json writes it."""
    return {
        "codec": entry.codec,
        "shape": list(entry.header.shape),
        "dtype": stored_dtype(entry.header.dtype),
        "bytes_compressed": entry.nbytes,
    }
