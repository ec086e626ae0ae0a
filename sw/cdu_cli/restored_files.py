"""Writing restored tensors as files of numpy, safetensors and torch."""

from __future__ import annotations

import io
import json
import sys
import warnings
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from cdu_tools.errors import UserError
from cdu_tools.files import write_parts
from cdu_tools.mapped import PIECE_BYTES, MappedFiles, in_pieces

if TYPE_CHECKING:
    from torch import Tensor

#: Metadata of a .safetensors file of torch, which transformers asks for.
_METADATA = {"format": "pt"}
#: The entry of the metadata in such a file; safetensors 0.8 writes a tensor of that name and cannot read the file.
_RESERVED = "__metadata__"
_TORCH_SUFFIXES = (".pt", ".pth")
#: The name that a tensor without one has in a file where all have names.
_UNNAMED = "tensor"
#: Bytes of the length of the header that a .safetensors file begins with, and the multiple of bytes that a header has.
_LENGTH_BYTES = 8
#: Tensors lie at multiples of so many bytes in a file that is mapped.
_ALIGNED = 64
#: The most bytes that the name of a file in an .npz has, and the ending of an array there.
_MEMBER_BYTES, _ARRAY = (1 << 16) - 1, ".npy"
#: The date of the files in an .npz, the first that the format can say: equal tensors make equal bytes.
_DATE = (1980, 1, 1, 0, 0, 0)


def check_format(target: Path, container: bool) -> None:
    """Raise UserError if a container is written to a file for one array."""
    if container and target.suffix.lower() == ".npy":
        raise UserError(f"{target} has room for one array: use .npz, .safetensors or .pt for the tensors of a container")


def write_tensors(target: Path, tensors: Mapping[str, Tensor], container: bool, files: MappedFiles) -> None:
    """Write tensors as a whole file in the format of the target's ending.

    Parameters
    ----------
    target
        A file that ends with .npz, .safetensors, .pt or .pth; with any other ending it becomes an .npy file, or an .npz file of
        a container.
    tensors
        Tensors by name; without a container, one with the name "". An .npz file asks for one after the other.
    container
        Whether the names are those of a container.
    files
        Mapped files, which give their pages back while values are written.

    numpy has no bfloat16: such tensors become float32, and a note says so.
    """
    suffix = target.suffix.lower()
    if suffix in _TORCH_SUFFIXES:
        import torch

        named = _spilled(tensors, files)
        content = named if container else named[""]
        _write_archive(target, lambda file: torch.save(content, _Released(file, files)), files)  # type: ignore[arg-type]
    elif suffix == ".safetensors":
        if _RESERVED in tensors:
            raise UserError(f"{target} cannot hold a tensor called {_RESERVED}, the name of its metadata: use .npz or .pt")
        named = _spilled(tensors, files)
        write_parts(target, _safetensors(named if container else {_UNNAMED: named[""]}, files))
    elif suffix == ".npz" or container:
        _check_members(target, tensors)
        _write_archive(target, lambda file: _write_npz(target, file, tensors, files), files)
    else:
        write_parts(target, _npy(target, tensors[""], files))


def _check_members(target: Path, names: Iterable[str]) -> None:
    """Raise UserError if an .npz file cannot hold an array of one of these names."""
    for name in names:
        if "\0" in name:
            raise UserError(f"{target} cannot hold a tensor called {name!r}: names in .npz end at \\0, use .safetensors or .pt")
        if (size := len(name.encode())) > (most := _MEMBER_BYTES - len(_ARRAY)):
            raise UserError(f"{target} cannot hold a name of {size} bytes: .npz takes {most}, use .safetensors or .pt")


def _write_archive(target: Path, write: Callable[[BinaryIO], None], files: MappedFiles) -> None:
    """Write a file that a function makes, whole or not at all, without having it in memory."""
    with files.scratch() as file:
        write(file)
        write_parts(target, in_pieces(files.mapped(file)))


class _Released:
    """A file to write, after each part of which mapped files give their pages back."""

    def __init__(self, file: BinaryIO, files: MappedFiles) -> None:
        self._file, self._files = file, files

    def write(self, data: bytes) -> int:
        """Write a part."""
        count = self._file.write(data)
        self._files.release()
        return count

    def flush(self) -> None:
        """Hand what is buffered to the system."""
        self._file.flush()


def _spilled(tensors: Mapping[str, Tensor], files: MappedFiles) -> dict[str, Tensor]:
    """Return tensors that lie in one mapped file, for formats that ask for all before the first is written."""
    import torch

    places: dict[str, tuple[torch.dtype, torch.Size, int]] = {}
    with files.scratch() as file:
        for name in tensors:
            tensor = tensors[name]
            places[name] = tensor.dtype, tensor.shape, file.tell()
            for part in _values(tensor, files):
                file.write(part)
            file.write(bytes(-file.tell() % _ALIGNED or _ALIGNED))  # no file that is mapped is empty
        whole = files.mapped(file)
    made = {}
    for name, (dtype, shape, begin) in places.items():
        values = whole[begin : begin + shape.numel() * dtype.itemsize]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # it cannot be written, and nothing writes it
            made[name] = torch.frombuffer(values, dtype=dtype).view(shape) if len(values) else torch.empty(shape, dtype=dtype)
    return made


def _values(tensor: Tensor, files: MappedFiles) -> Iterator[memoryview]:
    """Yield the values of a tensor as bytes, in pieces; mapped files give their pages back after each."""
    import torch

    for part in tensor.reshape(-1).split(PIECE_BYTES // tensor.dtype.itemsize):
        yield part.contiguous().view(torch.uint8).numpy().data
        files.release()


def _safetensors(tensors: Mapping[str, Tensor], files: MappedFiles) -> Iterator[bytes | memoryview]:
    """Yield a .safetensors file, byte by byte what the library makes of the same tensors, in pieces.

    Source: https://huggingface.co/docs/safetensors, section Format.
    """
    from safetensors.torch import save

    # The library knows its names of the dtypes, and the order in which it writes them.
    kinds = json.loads(save({str(one.dtype): one.new_empty(0) for one in tensors.values()})[_LENGTH_BYTES:])
    ranks = {kind: rank for rank, kind in enumerate(kinds)}
    order = sorted(tensors, key=lambda name: (ranks[str(tensors[name].dtype)], name.encode()))
    about: dict[str, Any] = {_RESERVED: _METADATA}
    end = 0
    for name in order:
        tensor = tensors[name]
        begin, end = end, end + tensor.nbytes
        about[name] = {"dtype": kinds[str(tensor.dtype)]["dtype"], "shape": [*tensor.shape], "data_offsets": [begin, end]}
    head = json.dumps(about, separators=(",", ":"), ensure_ascii=False).encode()
    head += b" " * (-len(head) % _LENGTH_BYTES)
    yield len(head).to_bytes(_LENGTH_BYTES, "little") + head
    for name in order:
        yield from _values(tensors[name], files)


def _npy(target: Path, tensor: Tensor, files: MappedFiles) -> Iterator[bytes | memoryview]:
    """Yield header and values of an .npy file."""
    import numpy as np
    import torch

    if tensor.dtype is torch.bfloat16:
        print(f"note: numpy has no bfloat16: {target} holds the same values as float32", file=sys.stderr)
    dtype = torch.float32 if tensor.dtype is torch.bfloat16 else tensor.dtype
    head = io.BytesIO()
    about = {
        "descr": np.lib.format.dtype_to_descr(torch.zeros(0, dtype=dtype).numpy().dtype),
        "fortran_order": False,
        "shape": tuple(tensor.shape),
    }
    np.lib.format.write_array_header_1_0(head, about)
    yield head.getvalue()
    for part in tensor.reshape(-1).split(PIECE_BYTES // dtype.itemsize):
        yield part.to(dtype).numpy().view(np.uint8).data
        files.release()


def _write_npz(target: Path, file: BinaryIO, tensors: Mapping[str, Tensor], files: MappedFiles) -> None:
    with zipfile.ZipFile(file, "w") as archive:
        for name in tensors:
            with archive.open(zipfile.ZipInfo(f"{name or _UNNAMED}{_ARRAY}", _DATE), "w", force_zip64=True) as member:
                for part in _npy(target, tensors[name], files):
                    member.write(part)
