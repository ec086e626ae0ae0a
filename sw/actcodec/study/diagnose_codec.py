"""The study of ``cdu diagnose``: a network trained with a codec, and the gradient error of each compressed tensor."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cdu_tools.errors import UserError
from cdu_tools.progress import Progress, Silent
from cdu_tools.report import Report, json_text
from torch import Tensor, nn

from actcodec.policies.catalog import policy
from actcodec.policies.policy import Policy
from actcodec.study import diagnosis_report
from actcodec.study.diagnosis import Diagnosis, diagnose
from actcodec.study.experiment import initial_model, loss_of, steps_per_epoch, train
from actcodec.study.setup import TrainingSetup


@dataclass(frozen=True)
class DiagnosisSettings:
    """Settings of a training and its diagnosis.

    Parameters
    ----------
    setup
        Network, images, and the training before the diagnosis.
    codec
        Name of a codec or policy, or a policy file.
    options
        Options of the codec.
    batches
        Batches to diagnose, taken from the training images in order.
    seed
        Seed of weights and order of images.
    """

    setup: TrainingSetup = field(default_factory=TrainingSetup)
    codec: str = "jpeg-act"
    options: Mapping[str, Any] = field(default_factory=dict)
    batches: int = 4
    seed: int = 0


def diagnose_codec(settings: DiagnosisSettings, command: str, progress: Progress | None = None) -> Report:
    """Train, then compress tensor by tensor: ``report.md``, ``gradient_errors.png`` and ``results.json``.

    Parameters
    ----------
    settings
        Settings of training and diagnosis.
    command
        Command that the report names.
    progress
        Receives every step of the training and every pass of the diagnosis.

    Raises UserError for a codec, options and data that do not fit each other, MissingToolError for missing packages or data.
    """
    shown, setup, codec = progress or Silent(), settings.setup, settings.codec
    chosen = policy(codec, **settings.options)
    recipe, images, total = setup.recipe, setup.images, setup.total_steps
    if settings.batches > steps_per_epoch(recipe, images):
        of = f"{settings.batches} batches of {recipe.batch}"
        raise UserError(f"{of} are more than the {len(images.train_inputs)} training images: use fewer")
    network = initial_model(recipe, images, settings.seed)
    shown.begin(f"training with {codec}", total)
    train(recipe, images, codec, chosen, settings.seed, on_step=shown.step, model=network)
    mean = Diagnosis.mean(list(_diagnoses(settings, network, chosen, shown)))
    results = {"model": setup.model, "dataset": images.name, "codec": codec, "steps": total, "batches": settings.batches}
    results |= mean.to_data()
    title = f"Which tensor hurts: {setup.model} on {images.name} with {Path(codec).name}"
    setting = (
        f"Network: {setup.model}, width {recipe.width}, depth {recipe.depth}, trained for {total} steps of {recipe.batch} "
        f"images with {codec} (seed {settings.seed}), then diagnosed on {settings.batches} batch(es) of training images."
    )
    files: dict[str, str | bytes] = {
        "gradient_errors.png": diagnosis_report.bars(title, mean),
        "results.json": json_text(results),
        "report.md": diagnosis_report.markdown(command, title, setting, mean),
    }
    return Report(results, files, [mean.table()])


def _diagnoses(settings: DiagnosisSettings, network: nn.Module, chosen: Policy, shown: Progress) -> Iterator[Diagnosis]:
    """Yield one diagnosis for each batch."""
    images, batch = settings.setup.images, settings.setup.recipe.batch
    network.train()
    for number in range(settings.batches):
        rows = slice(number * batch, (number + 1) * batch)
        inputs, targets = images.train_inputs[rows], images.train_targets[rows]

        def step(inputs: Tensor = inputs, targets: Tensor = targets) -> Tensor:
            return loss_of(network(inputs), targets, images)

        shown.begin(f"batch {number + 1} of {settings.batches}")
        chosen.set_samples(None)
        yield diagnose(network, step, chosen, on_pass=lambda done, total: shown.step())
