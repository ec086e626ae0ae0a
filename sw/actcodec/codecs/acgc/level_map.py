"""Empirical relation of AC-GC's AutoJPEG between the quality of an image table and the error, as data.

Errors are in steps of SFPR's 8 bits, so that channels of different ranges are alike. Tables alone predict the error only to a
factor of two, since a smooth channel loses less with the same table than a rough one. So two numbers of a channel enter, both 1
for white noise of deviation 1:

    log(error) = a + b * log(slope) + c * log(twist)

with a, b, c for each quality, fitted by ``cdu fit-levels`` to tensors saved in real training.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

import torch
from cdu_tools.errors import UserError
from torch import Tensor

#: Layout version of the file.
FORMAT = 1
_SHIPPED = "jpeg_levels.json"


@dataclass(frozen=True, eq=False)
class LevelMap:
    """Relation for one coder and one S."""

    S: float  #: S of SFPR when the relation was measured
    qualities: tuple[int, ...]  #: qualities of the image tables, coarsest first
    coefficients: Tensor  #: float64 (levels, 3): a, b, c
    deviations: Tensor  #: float64 (levels,): standard deviation of log(error) from the relation
    least: Tensor  #: float64 (2,): least log(slope) and log(twist) measured; below them the relation is flat

    def predicted(self, features: Tensor, deviations: float) -> Tensor:
        """Return the error of each channel at each level in steps of SFPR, float64 (levels, channels).

        Parameters
        ----------
        features
            Result of :func:`roughness`.
        deviations
            Standard deviations of the relation to add.
        """
        known = features.to(torch.float64).maximum(self.least.to(features.device)[:, None])
        coefficients, spread = self.coefficients.to(features.device), self.deviations.to(features.device)
        return (coefficients[:, :1] + coefficients[:, 1:] @ known + deviations * spread[:, None]).exp()


def roughness(samples: Tensor) -> Tensor:
    """Return logarithms of slope and twist of each channel, float32 (2, channels); minus infinity for constant channels.

    Slope is the root mean square of the differences of horizontal and vertical neighbours; twist is that of their mixed second
    differences, the errors of Lorenzo's prediction.

    Parameters
    ----------
    samples
        float32 (N, C, H, W), H and W at least 2, in steps of SFPR.
    """
    across, down = samples.diff(dim=3), samples.diff(dim=2)
    slope = (_mean_square(across) + _mean_square(down)) / 4
    twist = _mean_square(across.diff(dim=2)) / 4
    return torch.stack([slope, twist]).log() / 2


def _mean_square(values: Tensor) -> Tensor:
    """Return the mean square of each channel, float32 (channels,)."""
    return values.square().mean((0, 2, 3))


def load_level_map(coder: str, path: str | Path | None = None) -> LevelMap:
    """Return the relation for a coder from a file that ``cdu fit-levels`` wrote, or from the shipped one.

    Raises UserError for a file that cannot be read, is no such file, or lacks the coder.
    """
    advice = "write one with `cdu fit-levels -o DIR`"
    try:
        source = files(__package__).joinpath(_SHIPPED) if path is None else Path(path)
        table = json.loads(source.read_text(encoding="utf-8"))
        if table["format"] != FORMAT:
            raise UserError(f"{path} has layout {table['format']}, not {FORMAT}: {advice}")
        return parsed(table["coders"][coder], table["S"])
    except OSError as error:
        raise UserError(f"cannot read the levels in {path} ({error.strerror}): {advice}") from None
    except (ValueError, KeyError, TypeError) as error:
        raise UserError(f"{path} has no levels for {coder} ({error!r}): {advice}") from None


def parsed(coder: dict[str, Any], S: float) -> LevelMap:  # noqa: N803
    """Return the relation from its entry in the file; raise ValueError, KeyError or TypeError for an invalid entry."""
    levels = coder["levels"]
    numbers = [[level["quality"], *level["coefficients"], level["deviation"]] for level in levels]
    table, least = (torch.tensor(part, dtype=torch.float64) for part in (numbers, coder["least"]))
    if (
        table.ndim != 2
        or table.shape[1] != 5
        or least.shape != (2,)
        or not bool(table.isfinite().all() & least.isfinite().all())
    ):
        raise ValueError("a level needs five finite numbers")
    qualities = [int(quality) for quality in table[:, 0]]
    if sorted(set(qualities)) != qualities:
        raise ValueError("levels are not in ascending order of quality")
    return LevelMap(float(S), tuple(qualities), table[:, 1:4], table[:, 4], least)
