"""The study of ``cdu dqt``: a quantisation table for activations, beside the known ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from actcodec.study.activations import Activation, load_activations, record_training, save_activations
from actcodec.study.setup import TrainingSetup
from cdu_spec.dqt_file import table_text
from cdu_tools.errors import UserError
from cdu_tools.progress import Progress, Silent
from cdu_tools.report import Report, json_text

from cdu_dqt import plot, report
from cdu_dqt.study import DqtSettings, study


@dataclass(frozen=True)
class TableSettings:
    """Settings of a search for a table. UserError for settings that exclude each other.

    Parameters
    ----------
    table
        Objective and optimiser.
    setup
        The training whose activations are recorded, in the first step of each epoch.
    seed
        Seed of the training and of SGD.
    recorded, held_out
        Files with activations for the search, and for the measurement; by default those of the training, and those of
        a network one deeper with the next seed.
    record
        File to which the recorded activations are written.
    """

    table: DqtSettings
    setup: TrainingSetup = field(default_factory=lambda: TrainingSetup(epochs=3, batch=32))
    seed: int = 0
    recorded: Path | None = None
    held_out: Path | None = None
    record: Path | None = None

    def __post_init__(self) -> None:
        if self.record is not None and self.recorded is not None:
            raise UserError("--record writes what a training run records, but --input takes its place: give one of them")


def find_table(settings: TableSettings, command: str, progress: Progress | None = None) -> Report:
    """Find a table and compare it: ``table.json``, ``report.md``, ``rate_distortion.png`` and ``results.json``.

    Parameters
    ----------
    settings
        Settings of the search; the activations are written to ``record``.
    command
        Command that the report names.
    progress
        Receives the name of each part that begins.

    Raises UserError for files that hold no activations, and for data that do not fit the network.
    """
    shown, setup, wanted = progress or Silent(), settings.setup, settings.table
    deeper = replace(setup, depth=setup.recipe.depth + 1)
    fitted, fitted_from = _activations(settings.recorded, setup, settings.seed, shown)
    others, others_from = _activations(settings.held_out, deeper, settings.seed + 1, shown)
    found = study(
        [one.values for one in fitted],
        [one.values for one in others],
        wanted,
        settings.seed,
        lambda what: shown.begin(f"measuring: {what}"),
    )
    if settings.record is not None:
        save_activations(settings.record, fitted)
    about = [_about("Tables are looked for on", fitted_from, fitted), _about("Held out:", others_from, others)]
    results = report.results(found) | {"command": command, "activations": fitted_from, "held_out": others_from}
    name = f"{wanted.kind}, alpha = {wanted.alpha:g}"
    origin = {"name": name, "command": command, "activations": fitted_from, **results["settings"]}
    files: dict[str, str | bytes] = {
        "table.json": table_text(found.table, origin),
        "rate_distortion.png": plot.rate_distortion(Path(others_from).name.removesuffix(".npz"), found),
        "results.json": json_text(results, 1),
        "report.md": report.markdown(command, about, found),
    }
    lines = [
        f"{one.name:8} objective {one.objective:.4f}  rate {one.rate:.3f} bits  error {one.distortion:.3f}"
        for one in found.found
    ]
    return Report(results, files, lines)


def _activations(file: Path | None, setup: TrainingSetup, seed: int, shown: Progress) -> tuple[list[Activation], str]:
    """Return the activations of a file or of a training run, and a sentence with their source."""
    if file is not None:
        return load_activations(file), f"{file}"
    recipe, images = setup.recipe, setup.images
    shown.begin(f"training {recipe.model}, depth {recipe.depth}", setup.total_steps)
    about = f"{recipe.model} on {images.name} (width {recipe.width}, depth {recipe.depth}, seed {seed}), first step of "
    found = record_training(recipe, images, seed, shown.step)
    return found, about + f"each of {recipe.epochs} epochs, batch {recipe.batch}"


def _about(what: str, where_from: str, activations: Sequence[Activation]) -> str:
    values = sum(one.values.numel() for one in activations)
    return f"{what} {where_from}: {len(activations)} tensors, {values} values."
