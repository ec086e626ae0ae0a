"""Options and small helpers that several subcommands share."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from cdu_spec.config import CONFIGS, CduConfig
from cdu_spec.config_files import named_config
from cdu_spec.config_rules import ConfigError
from cdu_tools.distinct import check_distinct
from cdu_tools.errors import UserError
from cdu_tools.files import STANDARD_INPUT, STANDARD_OUTPUT, write_whole
from rich.console import Console
from rich.markup import escape
from rich.status import Status

if TYPE_CHECKING:
    from actcodec.codecs import Backend
    from cdu.delivery.memories import Memories
    from cdu_tools.mapped import MappedFiles
    from cdu_tools.progress import Progress

#: Threads, or processes, of one command.
MAX_THREADS = 1024

ConfigOption = Annotated[str, typer.Option("--config", help="Named configuration (tiny) or a .toml file.")]
SetOption = Annotated[
    list[str] | None, typer.Option("--set", help="Override one parameter, KEY=VALUE; may be given several times.")
]

MemoriesOption = Annotated[
    Path | None,
    typer.Option(help="TOML file that binds the memories in NAME.json to macros of a chip, or latches; default: registers."),
]


def bound(memories: Path | None) -> Memories:
    """Return the memory macros in the file of ``--memories``."""
    from cdu.delivery.memories import Memories, read_memories

    return read_memories(memories) if memories else Memories()


def folder_name(text: str) -> Path:
    """The directory of ``-o``; UserError for one without a name, which is not the present one."""
    if not text:
        raise UserError("-o names no directory: give it a name, or . for the present one")
    return Path(text)


def source_argument(metavar: str, about: str) -> Any:
    """The argument of a file to read; ``-`` is standard input, and UserError where that is a terminal."""
    parser = partial(_standard, stream=STANDARD_INPUT, descriptor=0, instead="pipe one into the command")
    return typer.Argument(metavar=metavar, parser=parser, help=f"{about}; -: standard input.")


def target_argument(metavar: str, about: str) -> Any:
    """The argument of a file to write; ``-`` is standard output, and UserError where that is a terminal."""
    parser = partial(_standard, stream=STANDARD_OUTPUT, descriptor=1, instead="pipe it into a program")
    return typer.Argument(metavar=metavar, parser=parser, help=f"{about}; -: standard output.")


def _standard(text: str, *, stream: Path, descriptor: int, instead: str) -> Path:
    if not text and stream == STANDARD_INPUT:
        raise UserError("the name of a file to read is empty: name a file")
    if text != "-":
        return Path(text)
    if os.isatty(descriptor):
        raise UserError(f"{stream} (-) is a terminal, which shows no bytes: name a file, or {instead}")
    return stream


_OUTPUT: Any = typer.Option(
    "-o", "--output", help="Directory for the results (made when missing).", parser=folder_name, metavar="DIRECTORY"
)
OutputOption = Annotated[Path, _OUTPUT]
#: Directory for the results of a command that need not write any.
OptionalOutputOption = Annotated[Path | None, _OUTPUT]
BackendOption = Annotated[
    str,
    typer.Option(
        help="What computes the codecs: torch (golden model), native (compiled kernels for the CPU, same bytes), triton "
        "(kernels for GPUs, same bytes), auto (the fastest of these), rtl (compiled RTL), or rtl:CONFIG (paper, a .toml)."
    ),
]
ModelOption = Annotated[str, typer.Option(help="Network: {models}.")]
DatasetOption = Annotated[str | None, typer.Option(help="Images: {datasets}. Default: what is usual for the network.")]
DataOption = Annotated[
    Path | None, typer.Option(help="Where cifar10 or fashion-mnist is: a folder, or an .npz file. Default: $CDU_DATA_DIR.")
]
LimitOption = Annotated[int | None, typer.Option(help="Use only the first so many training images.")]
WidthOption = Annotated[int | None, typer.Option(help="Channels of the network's first layers.")]
DepthOption = Annotated[
    int | None, typer.Option(help="Blocks per stage, convolutions per stage (vgg) or in all (vdsr), or layers (vit).")
]
SOption = Annotated[
    float | None, typer.Option("--S", help="S of SFPR, the scale of a channel's maximum (1; of jpeg-act and jpeg-base 1.125).")
]
BitsOption = Annotated[
    float | None,
    typer.Option(
        help="Bits per value of the affine codecs, 1, 2, 4 or 8; of ActNN's levels 1 to 8; of blpa-coded 1 to 12. Means, of "
        "actnn-L3 and up, and steps, of blpa-coded, need not be whole.",
    ),
]
RangeOption = Annotated[str | None, typer.Option("--range", help="Whose range division uses: block (default) or channel.")]
HuffmanOption = Annotated[
    str | None, typer.Option(help="Huffman tables of jpeg-base: standard (default), or optimal ones that count as bytes.")
]
RatioOption = Annotated[float | None, typer.Option(help="Compression ratio that policy auto keeps to (16).")]
ThreadsOption = Annotated[
    int,
    typer.Option(
        help="CPU threads of torch, units of backend rtl; 1 gives the same losses on any number of cores.",
        min=1,
        max=MAX_THREADS,
    ),
]
CheckOption = Annotated[bool, typer.Option("--check", help="Compare every result of the backend with the golden model.")]
MaxBytesOption = Annotated[
    int | None,
    typer.Option("--max-bytes", min=1, help="Largest array, in bytes, that is read or made. Default: a quarter of the memory."),
]
JsonOption = Annotated[Path | None, typer.Option("--json", help="Also write the machine-readable result to this file.")]


@dataclass(frozen=True)
class ImageOptions:
    """Options of the network that is trained, and of its images."""

    model: ModelOption = "resnet"
    dataset: DatasetOption = None
    data: DataOption = None
    limit: LimitOption = None


@dataclass(frozen=True)
class SizeOptions:
    """Options of the size of the network that is trained."""

    width: WidthOption = None
    depth: DepthOption = None


#: Numbers from here on stay as they are written, because so many digits help nobody.
_MOST_BITS = 1_000_000


def whole(number: float) -> float | int:
    """An int where a number is one that somebody may mean by bits: most codecs take no other."""
    return int(number) if number.is_integer() and abs(number) < _MOST_BITS else number


def given(**options: Any) -> dict[str, Any]:
    """Return the options of a codec that were given, of which None says that one was not; ``bits`` is :func:`whole`."""
    found = {name: value for name, value in options.items() if value is not None}
    return found | ({"bits": whole(found["bits"])} if "bits" in found else {})


def configuration(name: str, settings: list[str] | None) -> CduConfig:
    """The configuration that ``--config`` and ``--set`` describe; one of a file that ``--set`` changes has another name."""
    pairs = [setting.partition("=") for setting in settings or []]
    for key, equals, value in pairs:
        if not equals:
            raise ConfigError(f"--set {key + equals + value!r} is not of the form KEY=VALUE")
    check_distinct("--set", (key.strip() for key, _, _ in pairs))
    base, texts = named_config(name), {key.strip(): value.strip() for key, _, value in pairs}
    chosen = base.override_texts(texts)
    return chosen if base.name in CONFIGS or "name" in texts else chosen.override(name=chosen.changed_name(base))


def distinct(option: str, names: list[str] | None) -> list[str]:
    """Return the values of a repeatable option; raise UserError for a name that is given twice."""
    check_distinct(option, names)
    return names or []


def codec_backend(name: str, check: bool) -> Backend:
    """The backend that ``--backend`` and ``--check`` describe."""
    from actcodec.backends.named import TORCH, backend

    if check and name == TORCH:
        raise UserError("--check compares another backend with the golden model: give --backend rtl with it")
    chosen = backend(name)
    if check:
        from cdu_verif.backends.checked_backend import CheckedBackend

        return CheckedBackend(chosen)
    return chosen


def in_pieces_where_it_can(backend: Backend, name: str, files: MappedFiles, progress: Progress) -> Backend:
    """Return a backend that computes large tensors in pieces, or the given one, if its ``name`` is that of hardware."""
    from actcodec.backends.named import AUTO, NATIVE, TORCH
    from actcodec.backends.streamed_backend import StreamedBackend

    return StreamedBackend(backend, files, progress) if name in (AUTO, NATIVE, TORCH) else backend


def waiting(sentence: str) -> Status:
    """Return a status line for a terminal; names of files in it may have any characters."""
    return Console(stderr=True).status(escape(sentence))


def write_json(path: Path | None, result: Any) -> None:
    """Write ``result`` for ``--json FILE`` (nothing when the option was not given)."""
    if path is not None:
        write_whole(path, json.dumps(result, indent=2) + "\n")
