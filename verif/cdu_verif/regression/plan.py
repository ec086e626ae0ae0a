"""Which blocks are run with which parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cdu.delivery.blocks import BLOCKS
from cdu_spec.bitstream import Dtype, Mode
from cdu_spec.config import CONFIGS, CduConfig, ConfigError

from cdu_verif.simulation import cover_points
from cdu_verif.simulation.cover_points import merged

#: A unit with every mode.
_EVERY: dict[str, Any] = {"modes": CONFIGS["universal"].modes}
#: A unit for a short clock period.
_PIPELINED: dict[str, Any] = {"dct_stages": 1, "multiplier_stages": 1, "register_slices": 1}
#: Parameters that matter to a block: value sets of the quick level, and those that the full level adds.
_FORMATS = [{}, *({"value_format": name, **_EVERY} for name in ("bf16", "fp16"))]
#: Words of 1, 2, 4 and 8 rows.
_PORT_WIDTHS = [{"cdus": cdus} for cdus in (1, 2, 4, 8)]
_RANGED_WIDTHS: list[dict[str, Any]] = [{**width, **_EVERY} for width in _PORT_WIDTHS]
_VALUE_SIDE: list[dict[str, Any]] = [
    {},
    {"cdus": 2, "value_format": "fp16", **_EVERY},
    {"cdus": 4, **_EVERY},
    {"cdus": 8, "value_format": "bf16"},
    {"cdus": 2, "modes": ("sfpr", "brc")},
    {"multiplier_stages": 1, "register_slices": 1},
]
_HALVES: list[dict[str, Any]] = [{}, {"value_format": "bf16", "cdus": 3, **_EVERY}, _PIPELINED]
_TRANSFORMS = [{}, {"sample_bits": 9}, {"dct_stages": 1}]
_PRECISIONS: list[dict[str, Any]] = [
    {"const_bits": 13},
    {"const_bits": 8, "pass1_bits": 0},
    {"const_bits": 11, "pass1_bits": 4},
    {"const_bits": 13, "dct_stages": 1},
    {"const_bits": 8, "pass1_bits": 0, "dct_stages": 1},
]
_ROUNDING = [{"rounding": name} for name in ("half_away", "trunc")]
#: Numbers of CDUs; slices of every width that they have, and of a narrow packed port.
_ARRAYS = [{"cdus": cdus} for cdus in (1, 2, 3, 4, 8)]
_SLICES = [*_ARRAYS, {"cdus": 8, "packed_port_bits": 128}]
_VALUE_PORTS = [{"cdus": 3, "value_port_bits": 2048}, {"cdus": 4, "value_port_bits": 256}]
_PACKED_PORTS = [
    {"cdus": cdus, "packed_port_bits": bits} for cdus, bits in ((1, 1024), (4, 128), (4, 1024), (8, 128), (8, 512))
]
_QUICK: Mapping[str, list[dict[str, Any]]] = {
    "sfpr": [
        {},
        {"value_format": "bf16", "scale_bits": 8},
        {"value_format": "fp16", "scale_bits": 8, **_EVERY},
        {"scale_bits": 24, **_EVERY},
        {"multiplier_stages": 1, **_EVERY},
    ],
    "inverse_sfpr": [*_FORMATS, {"multiplier_stages": 1}],
    "alignment_buffer": [*_PORT_WIDTHS[:2], *_RANGED_WIDTHS[2:]],
    "inverse_alignment_buffer": _PORT_WIDTHS,
    **dict.fromkeys(("range_store", "range_finder"), _RANGED_WIDTHS[::2]),
    **{name: [_EVERY] for name in ("affine_quantizer", "affine_dequantizer", "affine_encoder")},
    "control": [{}, _EVERY],
    "value_front": _VALUE_SIDE,
    "value_back": _VALUE_SIDE,
    "dct": _TRANSFORMS,
    "idct": _TRANSFORMS,
    "two_way_dct": _TRANSFORMS,
    "shift_quantizer": _ROUNDING,
    "zvc_encoder": [{}, {"cdus": 4}],
    "zvc_decoder": [{}, {"cdus": 4}],
    "affine_decoder": [_EVERY, {"cdus": 4, **_EVERY}],
    **{name: [*_ARRAYS[1:3], *_RANGED_WIDTHS[2:]] for name in ("distributor", "gatherer")},
    "collector": _ARRAYS,
    "splitter": [{}, _EVERY, {"cdus": 2}, {"cdus": 3, **_EVERY}, *_RANGED_WIDTHS[2:]],
    **dict.fromkeys(("compressor", "decompressor"), _HALVES),
    "array": [
        {},
        {"cdus": 2, "duplex": "half", "value_format": "bf16", **_EVERY},
        {"cdus": 3, "value_format": "fp16", **_EVERY},
        {"cdus": 4, "packed_port_bits": 1024},
        {"cdus": 8, "duplex": "half"},
        _PIPELINED,
    ],
}
_FULL: Mapping[str, list[dict[str, Any]]] = {
    "sfpr": [
        *({"value_format": name, "scale_bits": bits} for name in ("fp32", "bf16", "fp16") for bits in (24, 11, 8)),
        {"scale_bits": 11, "multiplier_stages": 1},
    ],
    "inverse_sfpr": [{"value_format": "fp16", "multiplier_stages": 1, **_EVERY}],
    "dct": _PRECISIONS,
    "idct": _PRECISIONS,
    "two_way_dct": _PRECISIONS,
    **dict.fromkeys(("zvc_encoder", "zvc_decoder", "brc_encoder", "brc_decoder", "affine_decoder"), _SLICES),
    **dict.fromkeys(("distributor", "gatherer"), _VALUE_PORTS),
    **dict.fromkeys(("collector", "splitter"), _PACKED_PORTS),
    "compressor": [
        {"value_format": "fp16", "scale_bits": 11},
        {"scale_bits": 24, "rounding": "trunc"},
        {"modes": ("jpeg-act",)},
        {"modes": ("sfpr", "brc")},
    ],
    "decompressor": [{"value_format": "fp16"}, {"modes": ("jpeg-act",)}, {"modes": ("sfpr", "brc")}],
    **dict.fromkeys(("range_store", "range_finder"), _RANGED_WIDTHS),
    "array": [
        *({"cdus": cdus, "duplex": duplex} for cdus in (1, 2, 3, 4, 8) for duplex in ("full", "half")),
        *({"cdus": cdus, **_EVERY} for cdus in (1, 4, 8)),
        *({"modes": (mode,)} for mode in _EVERY["modes"][-5:]),
        {"cdus": 8, "packed_port_bits": 1024, "value_format": "bf16"},
        {"cdus": 4, "value_port_bits": 512, "packed_port_bits": 128},
        {"cdus": 2, "value_format": "fp16", "scale_bits": 11, "rounding": "trunc"},
        {"modes": ("jpeg-act",), "cdus": 2},
        {"modes": ("sfpr", "brc")},
        *({"cdus": cdus, "duplex": duplex, **_EVERY, **_PIPELINED} for cdus, duplex in ((2, "half"), (4, "full"))),
    ],
}


#: CDUs of the unit in a training loop.
_TRAINING_CDUS = 4
#: Policies of a training, and the modes that they use.
_TRAINING_MODES: Mapping[str, tuple[Mode, ...]] = {
    "jpeg-act": (Mode.SFPR, Mode.SFPR_ZVC, Mode.JPEG_ACT, Mode.BRC),
    "division": (Mode.DIVISION, Mode.ACTNN, Mode.BRC),
    "actnn": (Mode.ACTNN, Mode.BRC),
}
#: Name of the block that is the whole unit.
ARRAY = "array"
#: Name of the whole unit where a block is named.
UNIT = "unit"


@dataclass(frozen=True)
class Run:
    """One block with one set of parameters: one build, one simulation."""

    block: str  #: UNIT for the whole unit
    config: CduConfig
    parameters: tuple[tuple[str, Any], ...]  #: what differs from the configuration that was asked for

    @property
    def label(self) -> str:
        """``sfpr[value_format=bf16,scale_bits=8]``."""
        return f"{self.block}[{','.join(self.settings)}]" if self.parameters else self.block

    @property
    def folder(self) -> str:
        """The label as a name of a directory."""
        return "".join(letter if letter.isalnum() or letter in "_-" else "." for letter in self.label).rstrip(".")

    @property
    def settings(self) -> list[str]:
        """The parameters in the form that ``--set`` takes."""
        return [f"{key}={_text(value)}" for key, value in self.parameters]


def runs(config: CduConfig, names: Sequence[str], full: bool, pinned: Sequence[str] = ()) -> list[Run]:
    """Runs of the named blocks (all when none is named).

    ``pinned`` parameters keep the value of ``config``. Raises ConfigError for an unknown block.
    """
    found: dict[tuple[str, CduConfig], Run] = {}
    for name in names or list(BLOCKS):
        if name not in BLOCKS:
            raise ConfigError(f"unknown block {name!r}: use {', '.join(BLOCKS)}")
        for values in [*_QUICK.get(name, [{}]), *(_FULL.get(name, []) if full else [])]:
            free = {key: value for key, value in values.items() if key not in pinned}
            chosen = config.override(**free)
            changed = tuple((key, value) for key, value in free.items() if getattr(config, key) != value)
            found.setdefault((name, chosen), Run(name, chosen, changed))
    return list(found.values())


def training_run(config: CduConfig, pinned: Sequence[str] = ()) -> Run:
    """Training through the whole unit, with 4 CDUs unless the configuration has several or ``cdus`` is pinned.

    Raises ConfigError for a unit that has the modes of no policy, or that does not take float32.
    """
    if not training_policies(config) or config.dtype is not Dtype.FP32:
        choices = "; ".join(", ".join(mode.label for mode in modes) for modes in _TRAINING_MODES.values())
        raise ConfigError(f"training needs a unit with value_format = fp32 and the modes of a policy: use {choices}")
    if config.cdus > 1 or "cdus" in pinned:
        return Run(UNIT, config, ())
    return Run(UNIT, config.override(cdus=_TRAINING_CDUS), (("cdus", _TRAINING_CDUS),))


def training_policies(config: CduConfig) -> list[str]:
    """The policies whose modes a unit has."""
    return [name for name, modes in _TRAINING_MODES.items() if set(modes) <= set(config.built_modes)]


def cover_bins(planned: Sequence[Run]) -> dict[str, list[str]]:
    """The bins of the cover points that a whole regression of these runs has to hit."""
    parts = merged(cover_points.bins(run.config) for run in planned if run.block == ARRAY)
    return {point: sorted(names) for point, names in parts.items()}


def _text(value: Any) -> str:
    return ",".join(map(str, value)) if isinstance(value, tuple) else str(value)
