"""Record real activations of a training run, to which parameters of a codec are fitted."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from cdu_spec.modes import Mode
from cdu_tools.errors import UserError, reason
from cdu_tools.files import write_whole
from cdu_tools.texts import extents
from torch import Tensor

from actcodec.golden.block_shapes import BLOCK_SHAPES, has_blocks
from actcodec.policies.policy import SavedTensor
from actcodec.policies.tables.modes import jpeg_act_policy
from actcodec.study.data import Dataset
from actcodec.study.experiment import Recipe, steps_per_epoch, train
from actcodec.study.recording import RecordingPolicy


@dataclass(frozen=True, eq=False)
class Activation:
    """One activation in the form that autograd would have kept."""

    name: str  #: epoch, module that saved it, operation that produced it: ``3/blocks.0.conv1/relu``
    values: Tensor  #: float, its own memory


class DenseActivations:
    """Sink of a :class:`~actcodec.study.recording.RecordingPolicy` that stores the tensors that codec ``jpeg-act`` takes.

    ``epoch`` is that of the next tensors.
    """

    def __init__(self) -> None:
        self.epoch = 0
        self.found: list[Activation] = []
        self._table = jpeg_act_policy()

    def __call__(self, tensor: SavedTensor, values: Tensor) -> None:
        """Store a tensor if JPEG-ACT's table assigns it to ``jpeg-act``."""
        codec = self._table.choose(tensor)
        if codec is not None and codec.name == Mode.JPEG_ACT.label:
            self.found.append(Activation(f"{self.epoch}/{tensor.module}/{tensor.producer}", values.clone()))


def record_training(
    recipe: Recipe, dataset: Dataset, seed: int, on_step: Callable[[], None] = lambda: None
) -> list[Activation]:
    """Return the dense activations (conv, sum, network input) that codec ``jpeg-act`` fits, of an uncompressed training run.

    They are those of the first step of each epoch of :func:`~actcodec.study.experiment.train`, all samples of the batch.
    UserError if the network has none.
    """
    dense = DenseActivations()
    batches = steps_per_epoch(recipe, dataset)
    recording = RecordingPolicy(range(0, recipe.epochs * batches, batches), dense)
    steps = 0

    def step_done() -> None:
        nonlocal steps
        steps += 1
        dense.epoch = steps // batches
        on_step()

    train(recipe, dataset, Mode.JPEG_ACT.label, recording, seed, step_done)
    if not dense.found:
        raise UserError(f"model {recipe.model} on {dataset.name} has no activation of shape {BLOCK_SHAPES}")
    return dense.found


def save_activations(path: Path, activations: Sequence[Activation]) -> None:
    """Write activations as a compressed .npz file of float arrays; bfloat16, which numpy does not know, as float32."""
    file = io.BytesIO()
    wide = {one.name: one.values.float() if one.values.dtype is torch.bfloat16 else one.values for one in activations}
    np.savez_compressed(file, allow_pickle=False, **{name: values.cpu().numpy() for name, values in wide.items()})
    write_whole(path, file.getvalue())


def load_activations(path: Path) -> list[Activation]:
    """Return the arrays of an .npz file, float32 or float16 (N, C, H, W), W >= 8 and N * C * H >= 8; UserError for others."""
    try:
        arrays = np.load(path, allow_pickle=False)
        if not isinstance(arrays, np.lib.npyio.NpzFile):
            raise ValueError("it is no .npz file; use one that cdu dqt --record or numpy.savez wrote")
        with arrays:
            found = {name: arrays[name] for name in arrays}
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
        raise UserError(f"cannot read {path}: {reason(error)}") from None
    if not found:
        raise UserError(f"{path} holds no array: use float arrays of shape {BLOCK_SHAPES}")
    activations = []
    for name, array in found.items():
        native = array.astype(array.dtype.newbyteorder("="))
        if native.dtype not in (np.float32, np.float16) or not has_blocks(array.shape):
            raise UserError(
                f"array {name!r} of {path} is {array.dtype} of shape {extents(array.shape)}: "
                f"use float32 or float16 of shape {BLOCK_SHAPES}"
            )
        activations.append(Activation(name, torch.from_numpy(np.ascontiguousarray(native))))
    return activations
