"""Jobs of a network in training: the tensors that JPEG-ACT's table gives to a codec, with the golden model's results.

A unit's power is measured with these jobs, and its netlist must reproduce them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from actcodec import codecs
from actcodec.backends.backend import Backend
from actcodec.backends.job import DTYPES, Job, beats_in
from actcodec.backends.torch_backend import TorchBackend
from actcodec.policies.policy import SavedTensor
from actcodec.policies.tables.modes import jpeg_act_policy
from actcodec.study.data import Dataset
from actcodec.study.experiment import Recipe, train
from actcodec.study.recording import RecordingPolicy
from cdu_spec.config import CduConfig
from cdu_spec.matrix_view import MatrixView
from cdu_spec.modes import Mode
from cdu_tools.errors import UserError
from torch import Tensor

from cdu_verif.content.tensors import Exchange


@dataclass(frozen=True)
class Recording:
    """One tensor of a network: the module that saved it, and its values."""

    name: str
    values: Tensor


def record(recipe: Recipe, dataset: Dataset, modes: Sequence[Mode], images: int, seed: int = 0) -> dict[Mode, list[Recording]]:
    """Return the tensors of the last step of an uncompressed training run, by the mode that JPEG-ACT's table gives them.

    Each has the first ``images`` samples only. UserError if there are none for one of the ``modes``.
    """
    if recipe.steps is None:
        raise UserError("the number of training steps must be given")
    table, found = jpeg_act_policy(), dict[Mode, list[Recording]]((mode, []) for mode in modes)
    labels = {mode.label: mode for mode in modes}

    def keep(tensor: SavedTensor, values: Tensor) -> None:
        chosen = table.choose(tensor)
        if chosen is not None and chosen.name in labels and chosen.fits(values.shape):
            found[labels[chosen.name]].append(Recording(f"{tensor.module}/{tensor.producer}", values[:images].clone()))

    train(recipe, dataset, "none", RecordingPolicy([recipe.steps - 1], keep), seed)
    if none := [mode.label for mode, recorded in found.items() if not recorded]:
        raise UserError(f"model {recipe.model} on {dataset.name} saves nothing for {none[0]}: use another model or data set")
    return found


def normal_values(recordings: list[Recording], seed: int = 0) -> list[Recording]:
    """Return tensors of the same shapes with independent, normally distributed values, for comparison."""
    source = torch.Generator().manual_seed(seed)
    return [Recording(one.name, torch.randn(one.values.shape, generator=source)) for one in recordings]


def exchanges(recordings: list[Recording], name: str, config: CduConfig) -> list[tuple[Exchange, MatrixView]]:
    """Return the jobs that compress and decompress tensors, with a codec's default settings and a configuration's precision."""
    allowed = codecs.codec_options(name)
    precision = {key: value for key, value in config.to_dict().items() if key in allowed}
    backend = _Recorder()
    codec = codecs.codec(name, backend=backend, **precision)
    result = []
    for one in recordings:
        codec.decompress(codec.compress(one.values.to(DTYPES[config.dtype])))
        result.append(backend.last(one.name))
    return result


class _Recorder(Backend):
    """Golden model over beats that keeps its last compression and decompression."""

    def __init__(self) -> None:
        self._golden = TorchBackend()
        self._back: tuple[Job, Tensor] | None = None
        self._forth: tuple[Job, MatrixView, Tensor, Tensor] | None = None

    def compress(self, job: Job, beats: Tensor) -> Tensor:
        """Implement :class:`Backend`."""
        return self._golden.compress(job, beats)

    def compress_tensor(self, x: Tensor, view: MatrixView, job: Job) -> Tensor:
        """Implement :class:`Backend`."""
        beats = beats_in(x, view)
        payload = self.compress(job, beats)
        self._forth = job, view, beats, payload
        return payload

    def decompress(self, job: Job, payload: Tensor) -> Tensor:
        """Implement :class:`Backend`."""
        beats = self._golden.decompress(job, payload)
        self._back = job, beats
        return beats

    def last(self, name: str) -> tuple[Exchange, MatrixView]:
        """Return the last compression and decompression as an exchange."""
        assert self._forth is not None
        assert self._back is not None
        (job, view, beats, payload), (back, restored) = self._forth, self._back
        return Exchange(name, job, back, beats, bytes(payload.tolist()), restored), view
