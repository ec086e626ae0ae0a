"""Plan of a regression: the blocks to run, and their parameters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cdu.delivery.blocks import BLOCKS, check_block, configured
from cdu_spec.config import CduConfig
from cdu_spec.config_rules import ConfigError
from cdu_spec.config_texts import text_of
from cdu_spec.modes import JPEG_GMC, Coder, Dtype, Mode

from cdu_verif.blocks import record
from cdu_verif.simulation.cover_points import merged

#: Number of CDUs of the unit in a training loop.
_TRAINING_CDUS = 4
_JPEG_ACT = (Mode.SFPR, Mode.SFPR_ZVC, Mode.JPEG_ACT, Mode.BRC)
#: Policies of a training with the modes that they use, and coders of those with mode jpeg-act.
_TRAINING_MODES: Mapping[str, tuple[Mode, ...]] = {
    "jpeg-act": _JPEG_ACT,
    JPEG_GMC: _JPEG_ACT,
    "division": (Mode.DIVISION, Mode.ACTNN, Mode.BRC),
    "actnn": (Mode.ACTNN, Mode.BRC),
    "mxint8": (Mode.MX, Mode.BRC),
}
_TRAINING_CODERS: Mapping[str, Coder] = {"jpeg-act": Coder.ZVC, JPEG_GMC: Coder.GMC}
#: Name of the block that is the whole unit.
ARRAY = "array"
#: Names of the whole unit in options that name blocks: without its DMA engine, and behind it.
UNIT, DMA_UNIT = "unit", "dma_unit"
WHOLE = (UNIT, DMA_UNIT)


@dataclass(frozen=True)
class PlannedRun:
    """One block with one set of parameters: one build, one simulation."""

    block: str  #: one of WHOLE for the whole unit
    config: CduConfig
    parameters: tuple[tuple[str, Any], ...]  #: differences from the given configuration
    tests: tuple[str, ...] = ()  #: names of its tests; all if empty

    @property
    def label(self) -> str:
        """Return a label such as ``sfpr[value_format=bf16,scale_bits=8]``."""
        return f"{self.block}[{','.join(self.settings)}]" if self.parameters else self.block

    @property
    def folder(self) -> str:
        """Return the label as a name of a folder."""
        return "".join(letter if letter.isalnum() or letter in "_-" else "." for letter in self.label).rstrip(".")

    @property
    def settings(self) -> list[str]:
        """Return the parameters in the form that ``--set`` takes."""
        return [f"{key}={text_of(value)}" for key, value in self.parameters]


def runs(config: CduConfig, names: Sequence[str], full: bool, pinned: Sequence[str] = ()) -> list[PlannedRun]:
    """Return runs of the named blocks (all if none is named).

    ``pinned`` parameters keep the value of ``config``; a set that contradicts them is left out. Raises ConfigError for an
    unknown block.
    """
    found: dict[tuple[str, CduConfig], PlannedRun] = {}
    for name in names or list(BLOCKS):
        for one in _tried(name, config, full, pinned):
            if isinstance(one, PlannedRun):
                found.setdefault((name, one.config), one)
    return list(found.values())


def left_out(config: CduConfig, names: Sequence[str], full: bool, pinned: Sequence[str] = ()) -> dict[str, str]:
    """Return the blocks among those of :func:`runs` that have no run, each with the reason."""
    tried = {name: list(_tried(name, config, full, pinned)) for name in names or list(BLOCKS)}
    return {name: str(found[0]) for name, found in tried.items() if not any(isinstance(one, PlannedRun) for one in found)}


def _tried(name: str, config: CduConfig, full: bool, pinned: Sequence[str]) -> Iterator[PlannedRun | ConfigError]:
    """Yield the runs of a block, and the errors of sets that are no configuration or with which there is no such block."""
    check_block(name)
    tried = record(name)
    for values in [*tried.quick, *(tried.full if full else ())]:
        free = {key: value for key, value in values.items() if key not in pinned}
        try:
            chosen = config.override(**free)
            configured(name, chosen)
        except ConfigError as error:
            yield error
        else:
            yield PlannedRun(name, chosen, tuple((key, value) for key, value in free.items() if getattr(config, key) != value))


def training_run(config: CduConfig, pinned: Sequence[str] = ()) -> PlannedRun:
    """Return a run of training through the whole unit, with 4 CDUs unless the configuration has several or pins ``cdus``.

    Raises ConfigError for a unit that does not have the modes of any policy, or does not take float32.
    """
    if not training_policies(config) or config.dtype is not Dtype.FP32:
        choices = "; ".join(", ".join(mode.label for mode in modes) for modes in _TRAINING_MODES.values())
        raise ConfigError(f"training needs a unit with value_format = fp32 and the modes of a policy: use {choices}")
    block = DMA_UNIT if config.dma_bits else UNIT
    if config.cdus > 1 or "cdus" in pinned:
        return PlannedRun(block, config, ())
    return PlannedRun(block, config.override(cdus=_TRAINING_CDUS), (("cdus", _TRAINING_CDUS),))


def training_policies(config: CduConfig) -> list[str]:
    """Return the policies whose modes and coder a unit has."""
    suited = [name for name, modes in _TRAINING_MODES.items() if set(config.built_modes).issuperset(modes)]
    return [name for name in suited if name not in _TRAINING_CODERS or _TRAINING_CODERS[name] in config.built_coders]


def cover_bins(planned: Sequence[PlannedRun]) -> dict[str, list[str]]:
    """Return the bins of the cover points that a whole regression of these runs must hit."""
    parts = merged(record(run.block).bins(run.config) for run in planned)
    return {point: sorted(names) for point, names in parts.items()}
