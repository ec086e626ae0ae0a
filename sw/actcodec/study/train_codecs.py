"""The study of ``cdu train``: a network trained with several codecs and several seeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cdu_spec.affine import MAX_SEED
from cdu_tools.errors import UserError
from cdu_tools.progress import Progress, Silent
from cdu_tools.report import Report, json_text

from actcodec.backends.backend import Backend
from actcodec.backends.named import TORCH
from actcodec.policies.auto.policy import AutoPolicy
from actcodec.policies.policy_data import policy_data
from actcodec.study import report
from actcodec.study.experiment import Run, codec_policies, summarise, train
from actcodec.study.setup import TrainingSetup

#: Codecs that are trained by default; the uncompressed network always is.
CODECS = ("none", "jpeg-act", "sfpr")


@dataclass(frozen=True)
class TrainSettings:
    """Settings of training runs with some codecs. UserError for invalid values.

    Parameters
    ----------
    setup
        Network, images and schedule.
    codecs
        Names of codecs and policies, and policy files.
    options
        Options of codecs by name; each codec takes those that it knows.
    seeds, seed
        Number of runs for each codec, and the seed of the first.
    backend
        Name of the backend that computes the codecs, as results state it.
    """

    setup: TrainingSetup = field(default_factory=TrainingSetup)
    codecs: Sequence[str] = CODECS
    options: Mapping[str, Any] = field(default_factory=dict)
    seeds: int = 3
    seed: int = 0
    backend: str = TORCH

    def __post_init__(self) -> None:
        if self.seed + self.seeds - 1 > MAX_SEED:
            raise UserError(f"--seed {self.seed} with --seeds {self.seeds} is not allowed: use seeds up to {MAX_SEED}")


def train_codecs(
    settings: TrainSettings, command: str, progress: Progress | None = None, computed_by: Backend | None = None
) -> Report:
    """Train with every codec and seed: ``report.md``, ``curves.png``, ``results.json``, and the decisions of policies ``auto``.

    Parameters
    ----------
    settings
        Settings of the training.
    command
        Command that the report names.
    progress
        Receives every step.
    computed_by
        The backend, if it is not the one made by its name.

    Raises UserError for codecs, options and data that do not fit each other, MissingToolError for missing packages or data.
    """
    shown, setup = progress or Silent(), settings.setup
    recipe = setup.recipe
    options = dict(settings.options)
    if settings.backend != TORCH:
        options["backend"] = computed_by or settings.backend
    policies = codec_policies(settings.codecs, **options)
    images, total = setup.images, setup.total_steps
    runs = []
    for seed in range(settings.seed, settings.seed + settings.seeds):
        for name, policy in policies.items():
            shown.begin(f"{name}, seed {seed}", total)
            runs.append(train(recipe, images, name, policy, seed, on_step=shown.step))
    results = {"model": setup.model, "dataset": images.name, "runs": [run.to_dict(settings.backend) for run in runs]}
    title = f"{setup.model} on {images.name}, {total} steps of {recipe.batch} images, {settings.seeds} seed(s)"
    files: dict[str, str | bytes] = {
        "curves.png": report.curves(title, runs),
        "results.json": json_text(results),
        "report.md": report.markdown(command, recipe, images, runs),
    }
    for name, policy in policies.items():
        if isinstance(policy, AutoPolicy):
            files[f"{Path(name).stem}.policy.json"] = json_text(policy_data(policy.decided()))
    return Report(results, files, _lines(runs))


def _lines(runs: Sequence[Run]) -> list[str]:
    """Return score and ratio, a line per codec."""
    return [
        f"{row.codec:10} {runs[0].score_name} {row.score:.2f} ({row.difference:+.2f})  ratio {row.ratio_of_everything:.2f} "
        f"(activations {row.ratio:.2f})"
        for row in summarise(runs)
    ]
