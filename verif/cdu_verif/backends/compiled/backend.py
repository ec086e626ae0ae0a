"""Codecs computed by the compiled RTL of whole units, controlled by the reference driver."""

from __future__ import annotations

import queue
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import torch
from actcodec.backends.job import DTYPES, Job
from cdu_spec.config import CduConfig
from cdu_spec.geometry import LANES
from cdu_spec.modes import Dtype
from cdu_spec.register_types import Channel
from cdu_tools.errors import UserError
from torch import Tensor

from cdu_verif.backends.compiled import pieces
from cdu_verif.backends.compiled.suited import suited
from cdu_verif.backends.compiled.worker import Worker
from cdu_verif.backends.unit_backend import UnitBackend

_Part = TypeVar("_Part")


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


def _memory(beats: Tensor) -> npt.NDArray[np.generic]:
    """Return the memory of beats (B, 8) as integers, because numpy has no bfloat16."""
    array: npt.NDArray[np.generic] = beats.contiguous().view(torch.int32 if beats.element_size() == 4 else torch.int16).numpy()
    return array


def _joined(parts: Sequence[Tensor]) -> Tensor:
    return parts[0] if len(parts) == 1 else torch.cat(list(parts))
