"""Selection of the unit for a job, among those that a configuration describes."""

from __future__ import annotations

import torch
from actcodec.backends.job import Job
from cdu_spec.coding import ShiftCoding, coder_of
from cdu_spec.config import CduConfig
from cdu_spec.modes import Dtype
from cdu_spec.register_types import Channel
from cdu_tools.errors import UserError
from torch import Tensor

_REMEDY = "use backend 'rtl:FILE.toml' with a file that says so, or RtlBackend(CduConfig(...))"


class UnsuitedUnitError(UserError):
    """Job that a unit was not built for; the message says what is different."""


def suited(config: CduConfig, job: Job, channel: Channel, every_format: bool) -> CduConfig:
    """Return the configuration of the unit for a job of one direction, in the job's number format if ``every_format``.

    Raises UnsuitedUnitError if there is none.
    """
    if every_format:
        config = config.adapted(value_format=job.dtype.label)
    built: dict[str, object] = {"value_format": config.value_format}
    wanted: dict[str, object] = {"value_format": job.dtype.label}
    if job.mode.has_dct:
        built |= {"const_bits": config.const_bits, "pass1_bits": config.pass1_bits}
        wanted |= {"const_bits": job.const_bits, "pass1_bits": job.pass1_bits}
        if job.rounding is not None:
            built["rounding"], wanted["rounding"] = config.rounding, job.rounding.value
    different = [name for name in built if built[name] != wanted[name]]
    if different:
        has = ", ".join(f"{name} = {built[name]}" for name in different)
        needs = ", ".join(f"{name} = {wanted[name]}" for name in different)
        raise UnsuitedUnitError(f"unit {config.unit_name} was built with {has}, the job needs {needs}: {_REMEDY}")
    if job.mode not in config.built_modes:
        raise UnsuitedUnitError(
            f"unit {config.unit_name} was built without mode {job.mode.label}, only with {', '.join(config.modes)}: {_REMEDY}"
        )
    unbuilt = isinstance(job.how, ShiftCoding) and job.how.coder not in config.built_coders
    if unbuilt or (isinstance(job.how, ShiftCoding) and job.how.point and not config.has_gmc):
        needed = f"coder {coder_of(job.how).label}" if unbuilt else "a reconstruction point"
        raise UnsuitedUnitError(
            f"unit {config.unit_name} was built without {needed}, only with coders = {','.join(config.coders)}: {_REMEDY}"
        )
    name, bits = ("scale_bits", config.scale_bits)
    if channel is Channel.DECOMPRESS:
        name, bits = "reciprocal_bits", config.used_reciprocal_bits
    _check_scales(config, job.scales, name, bits)
    return config


def _check_scales(config: CduConfig, scales: Tensor, parameter: str, bits: int) -> None:
    """Raise UnsuitedUnitError if scales have more significant bits than a unit's multiplier."""
    lost = Dtype.FP32.fraction_bits + 1 - bits
    if bool((scales.contiguous().view(torch.int32) & ((1 << lost) - 1)).any()):
        raise UnsuitedUnitError(f"unit {config.unit_name} was built with {parameter} = {bits}, the scales have more: {_REMEDY}")
