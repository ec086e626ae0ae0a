"""Stimuli of blocks' netlists: tensors of the last step of a training run, recorded when first needed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from actcodec.study.setup import TrainingSetup
from cdu.delivery.blocks import HALVES
from cdu_spec.config import CduConfig
from cdu_spec.matrix_view import MatrixView
from cdu_spec.modes import Mode
from cdu_tools.errors import UserError

from cdu_verif.content.tensors import Exchange
from cdu_verif.stimulus import gate_stimulus, recorded_jobs
from cdu_verif.stimulus.gate_stimulus import GateStimulus, Ports

#: Default number of training steps.
STEPS = 40
#: Kinds of data: from the training, and of the same shapes with normally distributed values.
ACTIVATIONS, RANDOM = "activations", "random"


@dataclass(frozen=True)
class RecordingSettings:
    """Settings of the recorded tensors. UserError for settings that are not allowed.

    Parameters
    ----------
    config
        Configuration of the unit.
    blocks
        Names from :data:`cdu_verif.stimulus.gate_stimulus.TOPS`.
    codecs
        Codecs whose tensors are played, from :data:`cdu_verif.stimulus.gate_stimulus.CODECS`.
    setup
        Network, images, and number of steps; the tensors are those of the last step.
    images
        Number of images of its batch that are used.
    random
        Whether tensors of the same shapes with normally distributed values are also played.
    seed
        Seed of weights, batches and random values.
    """

    config: CduConfig
    blocks: Sequence[str] = HALVES
    codecs: Sequence[str] = (Mode.JPEG_ACT.label,)
    setup: TrainingSetup = field(default_factory=lambda: TrainingSetup(steps=STEPS))
    images: int = 1
    random: bool = False
    seed: int = 0

    def __post_init__(self) -> None:
        for block in self.blocks:
            gate_stimulus.check(block, self.codecs, self.config)
        batch = self.setup.recipe.batch
        if not 1 <= self.images <= batch:
            raise UserError(f"--images {self.images} is not allowed: use 1 to {batch}, the images of a batch")


class TrainingStimuli:
    """Stimuli of every block by its name and ports, for :func:`cdu_synth.power.measure_power.measure_power`.

    Raises UserError for data that do not fit the network, MissingToolError for data that are not installed.
    """

    def __init__(self, settings: RecordingSettings) -> None:
        self._settings = settings
        self._images = settings.setup.images

    @property
    def source(self) -> str:
        """Return a phrase on the origin of the tensors."""
        chosen, images = self._settings, self._images
        how = f"step {chosen.setup.total_steps}, {chosen.images} images, seed {chosen.seed}"
        return f"{chosen.setup.model} on {images.name} ({images.note}), {how}"

    def __call__(self, block: str, ports: Ports) -> Iterator[tuple[str, str, GateStimulus]]:
        """Yield name of the codec, kind of data, and words, for each codec that uses a block."""
        for (codec, kind), items in self._exchanges.items():
            if gate_stimulus.has_use(block, codec):
                yield codec, kind, gate_stimulus.gate_stimulus(block, self._settings.config, ports, items)

    @cached_property
    def _exchanges(self) -> dict[tuple[str, str], list[tuple[Exchange, MatrixView]]]:
        """Return the jobs by codec and kind of data."""
        chosen = self._settings
        found = {}
        modes = {codec: gate_stimulus.CODECS[codec][0] for codec in chosen.codecs}
        recorded = recorded_jobs.record(
            chosen.setup.recipe, self._images, list(dict.fromkeys(modes.values())), chosen.images, chosen.seed
        )
        for codec, mode in modes.items():
            found[codec, ACTIVATIONS] = recorded_jobs.exchanges(recorded[mode], codec, chosen.config)
            if chosen.random:
                drawn = recorded_jobs.normal_values(recorded[mode], chosen.seed)
                found[codec, RANDOM] = recorded_jobs.exchanges(drawn, codec, chosen.config)
        return found
