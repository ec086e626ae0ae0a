"""The study of ``cdu fit-levels``: the relation of JPEG quality and error in activations of a training run."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from cdu_tools.distribution import version
from cdu_tools.errors import UserError
from cdu_tools.progress import Progress, Silent
from cdu_tools.report import Report, json_text
from torch import Tensor

from actcodec.codecs.acgc.acgc_jpeg_codec import takes
from actcodec.policies.policy import SavedTensor
from actcodec.study import level_fit, level_plot
from actcodec.study.experiment import train
from actcodec.study.recording import RecordingPolicy
from actcodec.study.setup import TrainingSetup


@dataclass(frozen=True)
class LevelSettings:
    """The training whose activations of the first, the middle and the last step count, and its seed."""

    setup: TrainingSetup = field(default_factory=lambda: TrainingSetup(steps=300))
    seed: int = 0


def fit_levels(settings: LevelSettings, command: str, progress: Progress | None = None) -> Report:
    """Fit the relation of error and quality that codec ``acgc-jpeg`` picks tables by: ``levels.json`` and ``levels.png``.

    Parameters
    ----------
    settings
        The training, with a number of steps.
    command
        Command that the file names.
    progress
        Receives every step.

    Raises UserError for images without maps of 8x8 values.
    """
    shown, setup = progress or Silent(), settings.setup
    recipe, images = setup.recipe, setup.images
    measured, names = level_fit.measurements(), list[str]()

    def measure(tensor: SavedTensor, x: Tensor) -> None:
        if takes(x.shape):
            names.append(tensor.module)
            for one in measured:
                one.add(x)

    steps = setup.total_steps
    recorded = sorted({0, steps // 2, steps - 1})
    shown.begin(f"{setup.model} on {images.name}", steps)
    train(recipe, images, "none", RecordingPolicy(recorded, measure), settings.seed, on_step=shown.step)
    if not names:
        raise UserError(f"images of {images.name} have no maps of 8x8 values: use larger ones")
    result = level_fit.table(
        measured,
        command=command,
        versions={"cdu": version(), "torch": torch.__version__, "python": platform.python_version()},
        source={
            "network": f"{setup.model}, width {recipe.width}, depth {recipe.depth}",
            "images": f"{images.name}: {images.note}",
            "steps": recorded,
            "tensors": len(names),
            "modules": sorted(set(names)),
        },
    )
    picture = level_plot.picture(f"{setup.model} on {images.name}, {len(names)} tensors", measured, result)
    lines = [_line(coder, relation) for coder, relation in result["coders"].items()]
    return Report(result, {"levels.json": json_text(result, 1), "levels.png": picture}, lines)


def _line(coder: str, relation: Mapping[str, Any]) -> str:
    """Describe the quality of a coder's fitted relation in one line."""
    deviations = [level["deviation"] for level in relation["levels"]]
    fit = f"deviation of log(error) {min(deviations):.3f} to {max(deviations):.3f}"
    return f"{coder}: {len(deviations)} levels, {relation['channels']} channels, {fit}"
