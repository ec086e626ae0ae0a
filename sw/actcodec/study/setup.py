"""Settings of the training in a study: network, images, and schedule."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import torch
from cdu_tools.errors import MissingToolError, UserError

from actcodec.study import data as datasets
from actcodec.study.data import Dataset
from actcodec.study.experiment import Recipe, build_model, network, steps_per_epoch, total_steps


@dataclass(frozen=True)
class TrainingSetup:
    """Network, images and schedule; None selects the network's default. UserError for invalid values.

    Parameters
    ----------
    model
        Name of a network in :data:`actcodec.study.networks.NETWORKS`.
    dataset, data, limit
        As in :func:`actcodec.study.data.load`.
    width, depth, epochs, steps, batch, learning_rate
        As in :class:`actcodec.study.experiment.Recipe`.
    device
        Torch device; MissingToolError if there is none of that name, or if it cannot compute.
    """

    model: str = "resnet"
    dataset: str | None = None
    data: Path | None = None
    limit: int | None = None
    width: int | None = None
    depth: int | None = None
    epochs: int | None = None
    steps: int | None = None
    batch: int = 64
    learning_rate: float | None = None
    device: str = "cpu"

    def __post_init__(self) -> None:
        if self.epochs is not None and self.steps is not None:
            raise UserError("--epochs and --steps exclude each other: give one of them")

    @cached_property
    def recipe(self) -> Recipe:
        """The recipe of the training."""
        names = ("width", "depth", "epochs", "steps", "batch", "learning_rate")
        return Recipe.usual(self.model, **{name: getattr(self, name) for name in names})

    @cached_property
    def images(self) -> Dataset:
        """The images, on the device. UserError if they do not fit the network, or are fewer than a batch."""
        recipe = self.recipe
        name = network(self.model).dataset if self.dataset is None else self.dataset
        images = datasets.load(name, self.data, self.limit).to(torch_device(self.device))
        build_model(recipe, images)
        steps_per_epoch(recipe, images)
        return images

    @property
    def total_steps(self) -> int:
        """Number of steps of one run."""
        return total_steps(self.recipe, self.images)


def torch_device(name: str) -> torch.device:
    """Return the torch device of a name; MissingToolError if there is none, or if it cannot compute."""
    try:
        device = torch.device(name)
        torch.ones(1, device=device).item()
    except (RuntimeError, AssertionError, ImportError, AttributeError):
        raise MissingToolError(f"device {name!r} is not here: use cpu, or install a torch build for it") from None
    return device
