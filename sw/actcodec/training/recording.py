"""Real activations of a training run, for whoever fits a codec's parameters to them."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from cdu_spec.bitstream import Mode
from cdu_spec.errors import UserError
from cdu_spec.files import write_whole
from torch import Tensor

from actcodec.codecs import Codec, RawCopy
from actcodec.codecs.compressed import Packed
from actcodec.data import Dataset
from actcodec.golden.block_shapes import BLOCK_SHAPES, has_blocks
from actcodec.training.experiment import Recipe, train
from actcodec.training.policy import Policy, SavedTensor, jpeg_act_policy


@dataclass(frozen=True, eq=False)
class Activation:
    """One activation as autograd would have kept it."""

    name: str  #: epoch, module that saved it, operation that made it: ``3/blocks.0.conv1/relu``
    values: Tensor  #: float, its own memory


class RecordingPolicy(Policy):
    """Keeps every activation exactly, so that training is that without compression, and remembers some.

    Remembered are, of the first step of every epoch, the distinct tensors for which ``table`` chooses codec ``codec``.

    Parameters
    ----------
    table
        Decides what is remembered.
    codec
        Name of the codec.
    """

    def __init__(self, table: Policy, codec: str) -> None:
        super().__init__(())
        self._table = table
        self._codec = codec
        self._begun: int | None = 0  #: epoch that has begun and of which no step was seen
        self._recorded: int | None = None  #: epoch whose first step is running
        self.activations: list[Activation] = []

    def set_epoch(self, epoch: int) -> None:
        """An epoch begins: its first step is to be recorded."""
        self._begun = epoch

    def observer(self) -> None:
        """A step begins."""
        self._recorded, self._begun = self._begun, None

    def choose(self, tensor: SavedTensor) -> Codec | None:
        """See :class:`Policy`."""
        chosen = self._table.choose(tensor) if self._recorded is not None else None
        if chosen is None or chosen.name != self._codec:
            return None
        return _Recorder(f"{self._recorded}/{tensor.module}/{tensor.producer}", self.activations)


@dataclass
class _Recorder(Codec):
    """Codec ``none`` that leaves its copy in a list too."""

    tensor: str
    found: list[Activation]

    name = "none"

    def compress(self, x: Tensor) -> RawCopy:
        copy = RawCopy(x.detach().clone())
        self.found.append(Activation(self.tensor, copy.tensor))
        return copy

    def decompress(self, compressed: Packed) -> Tensor:
        return compressed.decompress()


def record_training(
    recipe: Recipe, dataset: Dataset, seed: int, on_step: Callable[[], None] = lambda: None
) -> list[Activation]:
    """The dense activations (conv, sum, network input) of shapes that fit codec ``jpeg-act``, of an uncompressed training run.

    They are those of the first step of each epoch of :func:`~actcodec.training.experiment.train`, all samples of the batch.
    UserError when the network has none.
    """
    recording = RecordingPolicy(jpeg_act_policy(), Mode.JPEG_ACT.label)
    train(recipe, dataset, Mode.JPEG_ACT.label, recording, seed, on_step)
    if not recording.activations:
        raise UserError(f"model {recipe.model} on {dataset.name} has no activation of shape {BLOCK_SHAPES}")
    return recording.activations


def save_activations(path: Path, activations: Sequence[Activation]) -> None:
    """Write activations as a compressed .npz file of float arrays; bfloat16, which numpy does not know, as float32."""
    file = io.BytesIO()
    wide = {one.name: one.values.float() if one.values.dtype is torch.bfloat16 else one.values for one in activations}
    np.savez_compressed(file, allow_pickle=False, **{name: values.cpu().numpy() for name, values in wide.items()})
    write_whole(path, file.getvalue())


def load_activations(path: Path) -> list[Activation]:
    """The arrays of an .npz file, float32 or float16 (N, C, H, W) with W >= 8 and N * C * H >= 8; UserError for others."""
    try:
        arrays = np.load(path, allow_pickle=False)
        if not isinstance(arrays, np.lib.npyio.NpzFile):
            raise ValueError("it is no .npz file; use one that cdu dqt --record or numpy.savez wrote")
        with arrays:
            found = {name: arrays[name] for name in arrays}
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
        raise UserError(f"cannot read {path}: {error}") from None
    if not found:
        raise UserError(f"{path} holds no array: use float arrays of shape {BLOCK_SHAPES}")
    activations = []
    for name, array in found.items():
        native = array.astype(array.dtype.newbyteorder("="))
        if native.dtype not in (np.float32, np.float16) or not has_blocks(array.shape):
            raise UserError(
                f"array {name!r} of {path} is {array.dtype} {array.shape}: use float32 or float16 of shape {BLOCK_SHAPES}"
            )
        activations.append(Activation(name, torch.from_numpy(np.ascontiguousarray(native))))
    return activations
