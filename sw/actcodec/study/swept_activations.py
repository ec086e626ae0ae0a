"""Activations on which a sweep measures ratio and error: from a file, or from a training run, recorded once for a folder."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from pathlib import Path

import torch
from cdu_tools.progress import Progress, Silent
from cdu_tools.sources import sources_sha256

from actcodec.study.activations import Activation, load_activations, record_training, save_activations
from actcodec.study.fidelity import Fidelity
from actcodec.study.setup import TrainingSetup

#: Name of the measure in the report of a sweep.
NAME = "ratio and error"
#: The packages on which recorded activations depend.
_SOURCES = ("actcodec.training", "actcodec.policies", "actcodec.saved", "actcodec.study")


@dataclass(frozen=True)
class SweptActivations:
    """Source of the activations.

    Parameters
    ----------
    recorded
        File with activations; None for a training run.
    setup
        The training run; the first step of each epoch is recorded.
    seed
        Seed of weights and order of images.
    """

    recorded: Path | None = None
    setup: TrainingSetup = field(default_factory=lambda: TrainingSetup(epochs=3, batch=32))
    seed: int = 0

    def check(self) -> None:
        """Raise UserError for a file that holds no activations, or data that do not fit the network."""
        if self.recorded is None:
            assert self.setup.images
        else:
            load_activations(self.recorded)

    def fidelity(self, folder: Path, progress: Progress | None = None) -> tuple[Fidelity, str, str]:
        """Return the measure, its name, and a phrase with its source; trains unless an earlier sweep into ``folder`` did."""
        path = self._recording(folder, progress or Silent()) if self.recorded is None else self.recorded
        activations: list[Activation] = load_activations(path)
        count = sum(one.values.numel() for one in activations)
        note = f"golden model on {len(activations)} activations ({count} values), {path.name}"
        return Fidelity.of(activations), NAME, note

    def _recording(self, folder: Path, shown: Progress) -> Path:
        """Return the file of the training's activations."""
        setup = self.setup
        recipe, images = setup.recipe, setup.images
        origin = {**vars(recipe), "dataset": images.name, "limit": setup.limit, "seed": self.seed}
        origin |= {"torch": torch.__version__, "sources": sources_sha256(*_SOURCES)}
        digest = hashlib.sha256(json.dumps(origin, sort_keys=True).encode()).hexdigest()[:12]
        path = folder / f"activations-{recipe.model}-{images.name}-{digest}.npz"
        if not path.is_file():
            shown.begin(f"training {recipe.model} on {images.name} to record activations", setup.total_steps)
            save_activations(path, record_training(recipe, images, self.seed, shown.step))
        return path
