"""Writing restored tensors as files of numpy, safetensors and torch."""

from __future__ import annotations

import io
import sys
import zipfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from cdu_tools.errors import UserError
from cdu_tools.files import write_parts, write_whole
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

        content = dict(tensors) if container else tensors[""]
        _write_archive(target, lambda file: torch.save(content, file), files)
    elif suffix == ".safetensors":
        from safetensors.torch import save

        named = tensors if container else {_UNNAMED: tensors[""]}
        if _RESERVED in named:
            raise UserError(f"{target} cannot hold a tensor called {_RESERVED}, the name of its metadata: use .npz or .pt")
        write_whole(target, save({name: tensor.contiguous() for name, tensor in named.items()}, _METADATA))
    elif suffix == ".npz" or container:
        _write_archive(target, lambda file: _write_npz(target, file, tensors, files), files)
    else:
        write_parts(target, _npy(target, tensors[""], files))


def _write_archive(target: Path, write: Callable[[BinaryIO], None], files: MappedFiles) -> None:
    """Write a file that a function makes, whole or not at all, without having it in memory."""
    with files.scratch() as file:
        write(file)
        write_parts(target, in_pieces(files.mapped(file)))


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
            with archive.open(zipfile.ZipInfo(f"{name or _UNNAMED}.npy", _DATE), "w", force_zip64=True) as member:
                for part in _npy(target, tensors[name], files):
                    member.write(part)
