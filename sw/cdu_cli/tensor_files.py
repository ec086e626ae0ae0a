"""Lazy reading of tensors from files of numpy, safetensors and torch."""

from __future__ import annotations

import io
import os
import pickle
import stat
import sys
import warnings
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from cdu_tools.distinct import check_distinct
from cdu_tools.errors import UserError
from cdu_tools.files import STANDARD_INPUT
from cdu_tools.mapped import MappedFiles, place_of
from cdu_tools.memory import tensor_bytes

from cdu_cli.input_files import NPY_MAGIC, opened, read_numbers

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    from torch import Tensor

#: Endings of the files that are read from a folder.
SUFFIXES = (".npy", ".npz", ".safetensors", ".pt", ".pth")
#: How an archive begins, and one without files.
_ZIP_MAGIC = (b"PK\x03\x04", b"PK\x05\x06")
#: How a file of torch's format before 1.6 begins.
_OLD_TORCH_MAGIC = b"\x80\x02\x8a\nl\xfc\x9cF\xf9"
#: A file of safetensors begins with the length of its header, 8 bytes, and the header with a brace.
_LENGTH_BYTES, _BRACE = 8, b"{"
#: The file in an archive of torch that other archives do not have.
_TORCH_INDEX = "data.pkl"
#: The file in it that names the byte order of the values, and the order of this machine.
_TORCH_ORDER, _ORDER = "byteorder", sys.byteorder.encode()
_NO_TENSORS = "it is no .npy, .npz, .safetensors or torch (.pt) file"
#: Errors that readers raise for damaged and foreign files.
_BROKEN = (
    zipfile.BadZipFile,
    zlib.error,
    pickle.UnpicklingError,
    RuntimeError,
    ValueError,
    LookupError,
    TypeError,
    AttributeError,
    EOFError,
)

Load = Callable[[], "Tensor"]


@dataclass(frozen=True)
class Tensors:
    """Tensors to be loaded one at a time.

    A file of one tensor without a name, .npy or a torch file of nothing else, is not ``named``; its tensor is called "".
    """

    loads: Mapping[str, Load]
    named: bool
    files: Sequence[Path]


def read_tensors(sources: Sequence[Path], max_bytes: int | None, mapped: MappedFiles | None = None) -> Tensors:
    """Open files and folders of tensors.

    Parameters
    ----------
    sources
        Files, and folders of which all files with an ending of :data:`SUFFIXES` are read. With more than one file, or with a
        folder, names of files stand before those of tensors: ``FILE/TENSOR``.
    max_bytes
        Most bytes of one tensor; None for :func:`cdu_tools.memory.tensor_bytes`.
    mapped
        Where given, large arrays of .npy and .npz files are mapped, not read into memory.

    Raises UserError for files of other formats, for a name that two tensors have, and if there is no tensor.
    """
    files = list(files_of(sources, SUFFIXES))
    limit = tensor_bytes() if max_bytes is None else max_bytes
    if len(files) == 1 and not sources[0].is_dir():
        ((path, _),) = files
        loads = _file(path, limit, mapped)
        if not loads:
            raise UserError(f"{path} holds no tensors")
        return Tensors(loads, "" not in loads, [path])
    merged: dict[str, Load] = {}
    owners: dict[str, Path] = {}
    for path, prefix in files:
        for name, load in _file(path, limit, mapped).items():
            full = f"{prefix}/{name}" if name else prefix
            if full in merged:
                raise _same_name(full, owners[full], path)
            merged[full], owners[full] = load, path
    if not merged:
        raise UserError(f"{', '.join(map(str, sources))} hold no tensors")
    return Tensors(merged, True, [path for path, _ in files])


def files_of(sources: Sequence[Path], suffixes: Sequence[str]) -> Iterator[tuple[Path, str]]:
    """Yield files, those of folders by their endings, and names for them: paths below the folder without the ending."""
    for source in sources:
        if not source.is_dir():
            yield source, source.stem
            continue
        inside = sorted(path for path in source.rglob("*") if path.suffix.lower() in suffixes and path.is_file())
        if not inside:
            raise UserError(f"the folder {source} has no file that ends with {', '.join(suffixes)}")
        for path in inside:
            yield path, path.relative_to(source).with_suffix("").as_posix()


def _same_name(name: str, one: Path, other: Path) -> UserError:
    if one == other:
        return UserError(f"{one} is given twice: name it once")
    return UserError(f"{one} and {other} would both be called {name!r}: rename one, or give them to two commands")


def distinct_files(sources: Sequence[Path], suffixes: Sequence[str]) -> list[tuple[Path, str]]:
    """Return what :func:`files_of` yields; raise UserError for two files of one name."""
    found = list(files_of(sources, suffixes))
    owners: dict[str, Path] = {}
    for path, name in found:
        if name in owners:
            raise _same_name(name, owners[name], path)
        owners[name] = path
    return found


def _file(path: Path, limit: int, mapped: MappedFiles | None) -> Mapping[str, Load]:
    """Return the tensors of one file by name."""
    with opened(path) as file:
        begin = file.read(_LENGTH_BYTES + 1)
        if begin[: len(NPY_MAGIC)] == NPY_MAGIC:
            array = read_numbers(path, file, begin, limit, mapped)
            return {"": lambda: _tensor(path, "", array)}
        is_zip, is_safetensors = begin.startswith(_ZIP_MAGIC), begin[_LENGTH_BYTES:] == _BRACE
        if begin.startswith(_OLD_TORCH_MAGIC):
            raise UserError(f"cannot read {path}: it has torch's old format; load it and save it anew with torch.save")
        if not (is_zip or is_safetensors):
            raise UserError(f"cannot read {path}: {_NO_TENSORS}")
        regular = path != STANDARD_INPUT and stat.S_ISREG(os.fstat(file.fileno()).st_mode)
        whole = None if regular else _rest(path, file, begin, limit)
    try:
        return _safetensors(path, whole, limit, mapped) if is_safetensors else _archive(path, whole, limit, mapped)
    except _BROKEN:
        kind = ".safetensors" if is_safetensors else ".npz or torch"
        raise UserError(f"cannot read {path}: it is no whole {kind} file") from None


def _check_names(path: Path, names: Iterable[str]) -> None:
    """Raise UserError if a tensor of a file in which all have names has the empty one."""
    if "" in names:
        raise UserError(f"{path} has a tensor with an empty name: a name has 1 character or more, rename it")


def _rest(path: Path, file: BinaryIO, begin: bytes, limit: int) -> bytes:
    """Return all bytes of a pipe; raise UserError for more than the limit."""
    parts, left = [begin], limit - len(begin) + 1
    while left > 0 and (part := file.read(min(left, 1 << 20))):
        parts.append(part)
        left -= len(part)
    if left <= 0:
        raise UserError(f"{path} has more than {limit} bytes: a greater --max-bytes allows more")
    return b"".join(parts)


def _archive(path: Path, whole: bytes | None, limit: int, mapped: MappedFiles | None) -> Mapping[str, Load]:
    with zipfile.ZipFile(path if whole is None else io.BytesIO(whole)) as archive:
        names, order = archive.namelist(), _ORDER
        for name in [name for name in names if Path(name).name == _TORCH_ORDER][:1]:
            with archive.open(name) as file:
                order = file.read(len(_ORDER) + 1)
    if any(Path(name).name == _TORCH_INDEX for name in names):
        # In the byte order of another machine, the values of the file are not those of the tensors.
        return _torch(path, whole, limit, mapped if order == _ORDER else None)
    if not names:
        raise UserError(f"{path} holds no arrays: save some with numpy.savez")
    if others := [name for name in names if not name.endswith(".npy")]:
        raise UserError(f"{path} holds {others[0]!r}, which is no array: save arrays alone with numpy.savez")
    keys = [name.removesuffix(".npy") for name in names]
    _check_names(path, keys)
    check_distinct(f"{path}: array", keys)
    return {key: _member(path, whole, name, limit, mapped) for key, name in zip(keys, names, strict=True)}


def _member(path: Path, whole: bytes | None, name: str, limit: int, mapped: MappedFiles | None) -> Load:
    """Return a function that loads one array of an .npz file."""

    def load() -> Tensor:
        try:
            with zipfile.ZipFile(path if whole is None else io.BytesIO(whole)) as archive, archive.open(name) as file:
                begin = file.read(len(NPY_MAGIC))
                array = read_numbers(Path(f"{path}/{name}"), file, begin, limit, mapped)  # type: ignore[arg-type]
        except _BROKEN:
            raise UserError(f"cannot read {path}: its array {name!r} is damaged") from None
        return _tensor(path, name.removesuffix(".npy"), array)

    return load


def _tensor(path: Path, name: str, array: npt.NDArray[np.generic]) -> Tensor:
    """Convert an array to a tensor; ``|V2`` is read as bfloat16, which numpy writes so."""
    import numpy as np
    import torch

    what = f"array {name!r} of {path}" if name else f"{path}"
    if array.dtype.kind == "V" and array.dtype.itemsize == 2 and not array.dtype.names:
        print(f"note: {what} holds |V2, which is read as bfloat16", file=sys.stderr)
        return _tensor(path, name, array.view(np.int16)).view(torch.bfloat16)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # a mapped file cannot be written, and nothing writes it
            return torch.from_numpy(array)
    except TypeError:
        raise UserError(f"{what} holds {array.dtype}: use an array of floats, integers or bool") from None


def _safetensors(path: Path, whole: bytes | None, limit: int, mapped: MappedFiles | None) -> Mapping[str, Load]:
    from safetensors import SafetensorError, safe_open, torch

    try:
        if whole is not None:
            tensors = torch.load(whole)
            _check_names(path, tensors)
            return {name: lambda one=one: one for name, one in tensors.items()}  # type: ignore[misc]
        with safe_open(path, "pt") as file:
            names, metadata = list(file.keys()), file.metadata() or {}
    except SafetensorError as error:
        raise UserError(f"cannot read {path}: {_first_line(error)}") from None

    _check_names(path, names)
    _note_left_out(path, "metadata", [key for key in metadata if key != "format"])

    def load(name: str) -> Tensor:
        try:
            with safe_open(path, "pt") as file:
                tensor: Tensor = file.get_tensor(name)
        except SafetensorError as error:
            raise UserError(f"cannot read tensor {name!r} of {path}: {_first_line(error)}") from None
        except (RuntimeError, TypeError):
            raise UserError(f"cannot read tensor {name!r} of {path}: torch has no tensor of its shape") from None
        return _pageable(_checked(tensor, f"tensor {name!r} of {path}", limit), path, mapped)

    return {name: lambda name=name: load(name) for name in names}  # type: ignore[misc]


def _torch(path: Path, whole: bytes | None, limit: int, mapped: MappedFiles | None) -> Mapping[str, Load]:
    import torch

    # Mapped, the values are read when they are used.
    source: Any = {"f": str(path), "mmap": True} if whole is None else {"f": io.BytesIO(whole)}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # about kinds of tensors, which are refused by name
            content = torch.load(**source, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError:
        raise UserError(
            f"cannot read {path}: it holds more than tensors in dicts and lists; save a state_dict with torch.save"
        ) from None

    def load(tensor: Tensor, what: str) -> Tensor:
        return _pageable(_checked(tensor, what, limit), path, mapped)

    if isinstance(content, torch.Tensor):
        return {"": lambda: load(content, str(path))}
    tensors: dict[str, Load] = {}
    others: list[str] = []
    for name, value in _leaves(content):
        if isinstance(value, torch.Tensor) and name not in tensors:
            tensors[name] = lambda name=name, value=value: load(value, f"tensor {name!r} of {path}")  # type: ignore[misc]
        elif isinstance(value, torch.Tensor):
            raise UserError(f"{path} has two tensors called {name!r}: rename one")
        else:
            others.append(name)
    _check_names(path, tensors)
    _note_left_out(path, "values that are no tensors", others)
    return tensors


def _note_left_out(path: Path, what: str, names: Sequence[str]) -> None:
    """Print which parts of a file are not compressed."""
    if names:
        listed = ", ".join(names[:5]) + (", ..." if len(names) > 5 else "")
        print(f"note: {what} of {path} are left out: {listed}", file=sys.stderr)


def _leaves(value: Any, *keys: object) -> Iterator[tuple[str, Any]]:
    """Yield the values in nested dicts and lists, with keys and indices joined by dots as names."""
    if isinstance(value, (Mapping, list, tuple)):
        for key, inner in value.items() if isinstance(value, Mapping) else enumerate(value):
            yield from _leaves(inner, *keys, key)
    else:
        yield ".".join(map(str, keys)) if keys else "the whole", value


def _checked(tensor: Tensor, what: str, limit: int) -> Tensor:
    """Return a tensor; raise UserError if it is larger than the limit."""
    if (size := tensor.numel() * tensor.element_size()) > limit:
        raise UserError(f"{what} has {size} bytes: {limit} are allowed, a greater --max-bytes allows more")
    return tensor.detach() if tensor.requires_grad else tensor


def _pageable(tensor: Tensor, path: Path, mapped: MappedFiles | None) -> Tensor:
    """Return the tensor that a library has mapped from a file in pages which ``mapped`` gives back; others as they are."""
    import torch
    from actcodec.codecs.tensor_kinds import kind_of

    plain = kind_of(tensor) is None and not tensor.is_conj() and not tensor.is_neg()
    if mapped is None or not plain or not tensor.is_contiguous() or not tensor.numel():
        return tensor
    with path.open("rb") as file:
        place = place_of(tensor.data_ptr(), file)
        if place is None or place % tensor.element_size():
            return tensor
        values = mapped.mapped(file)[place : place + tensor.nbytes]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # it cannot be written, and nothing writes it
        return torch.frombuffer(values, dtype=tensor.dtype).view(tensor.shape)


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]
