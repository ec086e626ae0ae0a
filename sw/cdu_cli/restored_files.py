"""Writing restored tensors as files of numpy, safetensors and torch."""

from __future__ import annotations

import io
import sys
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from cdu_tools.errors import UserError
from cdu_tools.files import write_whole

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
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


def write_tensors(target: Path, tensors: Mapping[str, Tensor], container: bool) -> None:
    """Write tensors as a whole file in the format of the target's ending.

    Parameters
    ----------
    target
        A file that ends with .npz, .safetensors, .pt or .pth; with any other ending it becomes an .npy file, or an .npz file of
        a container.
    tensors
        Tensors by name; without a container, one with the name "".
    container
        Whether the names are those of a container.

    numpy has no bfloat16: such tensors become float32, and a note says so.
    """
    suffix = target.suffix.lower()
    if suffix in _TORCH_SUFFIXES:
        _write_torch(target, dict(tensors) if container else tensors[""])
        return
    named = tensors if container else {_UNNAMED: tensors[""]}
    if suffix == ".safetensors":
        from safetensors.torch import save

        if _RESERVED in named:
            raise UserError(f"{target} cannot hold a tensor called {_RESERVED}, the name of its metadata: use .npz or .pt")
        write_whole(target, save({name: tensor.contiguous() for name, tensor in named.items()}, _METADATA))
    elif suffix == ".npz" or container:
        write_whole(target, _npz({name: _array(target, tensor) for name, tensor in named.items()}))
    else:
        write_whole(target, *_npy(_array(target, tensors[""])))


def _write_torch(target: Path, content: Tensor | dict[str, Tensor]) -> None:
    import torch

    file = io.BytesIO()
    torch.save(content, file)
    write_whole(target, file.getbuffer())


def _array(target: Path, tensor: Tensor) -> npt.NDArray[np.generic]:
    import torch

    if tensor.dtype is torch.bfloat16:
        print(f"note: numpy has no bfloat16: {target} holds the same values as float32", file=sys.stderr)
        tensor = tensor.float()
    array: npt.NDArray[np.generic] = tensor.contiguous().numpy()
    return array


def _npy(array: npt.NDArray[np.generic]) -> tuple[bytes, memoryview]:
    """Return header and values of an .npy file."""
    import numpy as np

    head = io.BytesIO()
    np.lib.format.write_array_header_1_0(head, np.lib.format.header_data_from_array_1_0(array))
    return head.getvalue(), array.reshape(-1).view(np.uint8).data


def _npz(arrays: Mapping[str, npt.NDArray[np.generic]]) -> memoryview:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, array in arrays.items():
            with archive.open(zipfile.ZipInfo(f"{name}.npy", _DATE), "w", force_zip64=True) as member:
                for part in _npy(array):
                    member.write(part)
    return file.getbuffer()
