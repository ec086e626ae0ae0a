"""Ratio and error of the modes of a unit on given activations, as a measure of design-space exploration."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from cdu_spec.config import CduConfig
from cdu_spec.config_rules import ConfigError
from cdu_spec.modes import Dtype
from cdu_tools.sources import sources_sha256

from actcodec.backends.job import DTYPES
from actcodec.codecs import codec
from actcodec.saved.statistics import relative_error
from actcodec.study.activations import Activation

#: Parameters of a configuration that change the result of a mode; no byte depends on the others.
_PARAMETERS = ("scale_bits",)
_TRANSFORM_PARAMETERS = ("const_bits", "pass1_bits", "rounding")


@dataclass(frozen=True, eq=False)
class Fidelity:
    """Measure ``ratio``: the golden model of one mode on recorded activations, with the codec's own settings otherwise.

    Parameters
    ----------
    activations
        Float arrays (N, C, H, W), W >= 8, by name. They are sent to workers with this object.
    """

    activations: Mapping[str, np.ndarray]
    name: str = "ratio"

    @classmethod
    def of(cls, activations: Sequence[Activation]) -> Fidelity:
        """Return the measure on recorded activations."""
        return cls({one.name: one.values.float().cpu().numpy() for one in activations})

    def versions(self) -> dict[str, str]:
        """Return the versions of the golden model and of torch."""
        golden = sources_sha256("cdu_spec", "actcodec.backends", "actcodec.codecs", "actcodec.golden", __name__)
        return {"golden": golden, "torch": torch.__version__}

    def whats(self, config: CduConfig) -> Iterator[dict[str, Any]]:
        """Yield the measurement tasks of a configuration: one per mode with scales, which are all but brc, bypass and mx.

        Raises ConfigError for 9-bit samples, which no unit has.
        """
        if config.sample_bits != CduConfig.sample_bits:
            raise ConfigError(f"sample_bits = {config.sample_bits} builds no unit, so it has no ratio: measure its area only")
        digest = self._digest()
        for mode in config.built_modes:
            if mode.has_scales:
                names = (*_PARAMETERS, *(_TRANSFORM_PARAMETERS if mode.has_dct else ()))
                options = {name: getattr(config, name) for name in names}
                common = {"mode": mode.label, "value_format": config.value_format, "activations_sha256": digest}
                yield common | {"options": options}

    def run(self, what: Mapping[str, Any], attachment: str) -> dict[str, Any]:
        """Compress and decompress all activations.

        ``ratio``: bytes of the values in the unit's number format over those of the streams, headers and scales included;
        ``bytes_per_value``; ``relative_error``: ||x - x'|| / ||x|| of the values in that format, mean over the tensors.
        """
        chosen, dtype = codec(what["mode"], **what["options"]), DTYPES[Dtype.from_label(what["value_format"])]
        original, kept, values, errors = 0, 0, 0, []
        for array in self.activations.values():
            x = torch.from_numpy(array).to(dtype)
            packed = chosen.compress(x)
            errors.append(relative_error(x, chosen.decompress(packed), what["mode"]))
            original += x.numel() * x.element_size()
            kept += packed.nbytes
            values += x.numel()
        return {
            "ratio": original / kept,
            "bytes_per_value": kept / values,
            "relative_error": sum(errors) / len(errors),
            "bytes_original": original,
            "bytes_compressed": kept,
        }

    def _digest(self) -> str:
        digest = hashlib.sha256()
        for name, array in self.activations.items():
            digest.update(f"{name} {array.dtype} {array.shape}\n".encode())
            digest.update(array.tobytes())
        return digest.hexdigest()
