"""Backend ``rtl``: codecs computed by the compiled RTL of a whole unit, controlled by the reference driver."""

from __future__ import annotations

import queue
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import torch
from actcodec.backends.backend import Backend
from actcodec.backends.job import DTYPES, Job
from cdu_spec.bitstream import Dtype, Mode
from cdu_spec.config import CduConfig, named_config
from cdu_spec.geometry import LANES
from cdu_spec.registers import Channel
from cdu_tools.errors import UserError
from torch import Tensor

from cdu_verif.backends.compiled import pieces
from cdu_verif.backends.compiled.worker import Worker
from cdu_verif.backends.unit_backend import UnitBackend

#: Default configuration of the backend ``rtl``.
DEFAULT_CONFIG = CduConfig.name
_REMEDY = "use backend 'rtl:FILE.toml' with a file that says so, or RtlBackend(CduConfig(...))"

_Part = TypeVar("_Part")


class UnsuitedUnitError(UserError):
    """Job that a unit was not built for; the message says what is different."""


def rtl(name: str | None) -> Backend:
    """Return the backend ``rtl`` (``tiny``) or ``rtl:NAME``, a named configuration or a TOML file, for every number format.

    With ``dma_bits`` in the configuration tensors go through the unit's DMA engine.
    """
    config = named_config(DEFAULT_CONFIG if name is None else name)
    if config.dma_bits:
        from cdu_verif.backends.compiled.dma_backend import DmaBackend

        return DmaBackend(config, every_format=True)
    return RtlBackend(config, every_format=True)


class RtlBackend(UnitBackend):
    """Compute jobs with compiled units.

    A unit is compiled when the first job needs it (a minute or a few), and kept in the user's cache. Several threads may use
    one backend. A large job is cut into pieces for as many units as there are threads, if the concatenated payloads of the
    pieces are the payload of the whole; the bytes are the same for any number of threads.

    Parameters
    ----------
    config
        Configuration of the units.
    threads
        Number of units that work at the same time; default: torch's number of threads.
    every_format
        Whether jobs of every number format are taken, with a unit for each, or only those of ``config.value_format``.

    Raises UnsuitedUnitError for a job that the units were not built for.
    """

    def __init__(self, config: CduConfig, threads: int | None = None, *, every_format: bool = False) -> None:
        if threads is not None and threads < 1:
            raise UserError(f"{threads} threads are not allowed: use 1 or more")
        self.config, self.threads, self.every_format = config, threads, every_format
        self._idle: dict[Dtype, queue.SimpleQueue[Worker]] = {dtype: queue.SimpleQueue() for dtype in Dtype}

    def compress(self, job: Job, beats: Tensor) -> Tensor:
        """Implement :class:`Backend`."""
        config = suited(self.config, job, Channel.COMPRESS, self.every_format)
        edges = pieces.cuts(job, self._threads)
        values = _memory(beats.detach().cpu())

        def one(worker: Worker, span: slice) -> Tensor:
            result = worker.compress(pieces.piece(job, span.start, span.stop), values[span])
            # The buffer of a payload has the size of the longest one possible: free the unused part.
            return torch.frombuffer(result.data, dtype=torch.uint8).clone()

        return _joined(self._all(config, one, pieces.spans(edges)))

    def _decompress(self, job: Job, payload: Tensor) -> Tensor:
        config = suited(self.config, job, Channel.DECOMPRESS, self.every_format)
        edges = pieces.cuts(job, self._threads)
        borders = pieces.payload_cuts(job, payload, edges)
        data = payload.detach().cpu().contiguous().numpy()

        def one(worker: Worker, part: tuple[slice, slice]) -> Tensor:
            span, place = part
            result = worker.decompress(pieces.piece(job, span.start, span.stop), data[place])
            return torch.frombuffer(result.data, dtype=DTYPES[job.dtype])

        parts = list(zip(pieces.spans(edges), pieces.spans(borders), strict=True))
        return _joined(self._all(config, one, parts)).view(job.beats, LANES)

    @property
    def _threads(self) -> int:
        return torch.get_num_threads() if self.threads is None else self.threads

    def _all(self, config: CduConfig, work: Callable[[Worker, _Part], Tensor], parts: Sequence[_Part]) -> list[Tensor]:
        """Return the results of parts of a job, each computed by a unit of its own."""
        idle = self._idle[config.dtype]

        def one(part: _Part) -> Tensor:
            try:
                worker = idle.get_nowait()
            except queue.Empty:
                worker = Worker(config)
            result = work(worker, part)
            # A unit that has failed is not used again.
            idle.put(worker)
            return result

        if len(parts) == 1:
            return [one(parts[0])]
        with ThreadPoolExecutor(len(parts)) as pool:
            return list(pool.map(one, parts))


def suited(config: CduConfig, job: Job, channel: Channel, every_format: bool) -> CduConfig:
    """Return the configuration of the unit for a job of one direction, in the job's number format if ``every_format``.

    Raises UnsuitedUnitError if there is none.
    """
    if every_format:
        config = config.override(value_format=job.dtype.label)
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
    unbuilt = job.mode is Mode.JPEG_ACT and job.coder not in config.built_coders
    if unbuilt or (job.point and not config.has_gmc):
        needed = f"coder {job.coder.label}" if unbuilt else "a reconstruction point"
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


def _memory(beats: Tensor) -> npt.NDArray[np.generic]:
    """Return the memory of beats (B, 8) as integers, because numpy has no bfloat16."""
    array: npt.NDArray[np.generic] = beats.contiguous().view(torch.int32 if beats.element_size() == 4 else torch.int16).numpy()
    return array


def _joined(parts: Sequence[Tensor]) -> Tensor:
    return parts[0] if len(parts) == 1 else torch.cat(list(parts))
