"""Measure the errors that image tables cause in activations, and fit the relation by which codec ``acgc-jpeg`` picks tables.

Each channel of each recorded tensor is one measurement for each table: its roughness, and the RMS error of decompression, both
in steps of SFPR. The relation is linear in logarithms (:mod:`actcodec.codecs.acgc.level_map`), by least squares for each table.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import torch
from cdu_spec import dqt
from cdu_spec.sfpr import SCALE_UNIT, VALUE_MAX
from torch import Tensor

from actcodec.codecs import Codec, codec
from actcodec.codecs.acgc.acgc_jpeg_codec import CODERS
from actcodec.codecs.acgc.error_bounded import along_channels
from actcodec.codecs.acgc.level_map import FORMAT, roughness

#: S of SFPR: no value saturates, because no table can correct the errors of saturation.
FITTED_S = VALUE_MAX / SCALE_UNIT
#: Images of a batch that are measured.
MEASURED_IMAGES = 8
#: Qualities of the image tables; between neighbours the error changes by some 5 to 15 per cent.
QUALITIES = (
    *(2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 18, 20, 23, 26, 30, 35, 40, 45, 50, 55, 60, 64, 68, 72, 75, 78, 80, 82, 84, 86),
    *(88, 89, 90, 91, 92, 93, 94, 95, 96, 97, 98, 99, 100),
)


@dataclass
class Measurements:
    """The measurements with one coder; lists have one entry for each tensor."""

    coder: str
    qualities: tuple[int, ...]
    features: list[Tensor] = field(default_factory=list)  #: float64 (2, channels)
    errors: list[Tensor] = field(default_factory=list)  #: float64 (qualities, channels)

    def __post_init__(self) -> None:
        self._codecs: list[Codec] = []
        for quality in self.qualities:
            self._codecs.append(codec(self.coder, S=FITTED_S, dqt=f"image{quality}"))

    def add(self, x: Tensor) -> None:
        """Measure the first images of a tensor (N, C, H, W); channels of zeros do not count."""
        x = x[:MEASURED_IMAGES]
        largest = x.abs().amax((0, 2, 3))
        x, largest = x[:, largest > 0].contiguous(), largest[largest > 0]
        if not len(largest):
            return
        step = along_channels(largest / VALUE_MAX, x.ndim)
        features = roughness(x / step).to(torch.float64)
        measured = [((one.compress(x).decompress() - x) / step).to(torch.float64) for one in self._codecs]
        self.features.append(features)
        self.errors.append(torch.stack([error.square().mean((0, 2, 3)).sqrt() for error in measured]))


def measurements() -> list[Measurements]:
    """Return empty measurements for every coder, with its possible tables."""
    return [Measurements(coder, usable_qualities(coder)) for coder in CODERS]


def usable_qualities(coder: str) -> tuple[int, ...]:
    """Return the qualities whose tables differ, coarsest first."""
    if coder == "jpeg-base":
        return QUALITIES
    tables: dict[tuple[int, ...], int] = {}
    for quality in QUALITIES:
        tables.setdefault(dqt.shifts(f"image{quality}"), quality)
    return tuple(tables.values())


def fitted(measured: Measurements) -> dict[str, Any]:
    """Return the relation as stored in the file, level by level.

    Each level has the standard deviation of log(error) without the relation (spread) and with it, and the residuals at both
    ends.
    """
    features, errors = torch.cat(measured.features, 1), torch.cat(measured.errors, 1)
    usable = features.isfinite().all(0) & (errors > 0).all(0)
    design = torch.cat([torch.ones(1, int(usable.sum()), dtype=torch.float64), features[:, usable]]).T
    levels = []
    for quality, row in zip(measured.qualities, errors[:, usable].log(), strict=True):
        solution = torch.linalg.lstsq(design, row[:, None]).solution
        residuals = row - (design @ solution)[:, 0]
        levels.append(
            {
                "quality": quality,
                "mean_error": round(float(row.exp().mean()), 6),
                "spread": round(float(row.std(correction=0)), 6),
                "coefficients": [round(float(number), 6) for number in solution[:, 0]],
                "deviation": round(float(residuals.square().mean().sqrt()), 6),
                "greatest_residual": round(float(residuals.max()), 6),
                "least_residual": round(float(residuals.min()), 6),
            }
        )
    least = [round(float(edge), 6) for edge in features[:, usable].amin(1)]
    return {"channels": int(usable.sum()), "least": least, "levels": levels}


def table(measured: Iterable[Measurements], **facts: Any) -> dict[str, Any]:
    """Return the whole file: ``facts`` (origin of the activations, versions), and the relation of each coder."""
    return {"format": FORMAT, **facts, "S": FITTED_S, "coders": {one.coder: fitted(one) for one in measured}}
