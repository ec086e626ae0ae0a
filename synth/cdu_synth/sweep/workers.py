"""Workers of a sweep: processes of this machine, or the workers of a Dask cluster."""

from __future__ import annotations

import pickle
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Any

from cdu_tools.distribution import missing
from cdu_tools.errors import UserError
from cdu_tools.parallel import processes

from cdu_synth.sweep.task import Task, Work, perform

#: Pattern of the address of a scheduler.
_ADDRESS = r"(tcp|tls|ws|wss|ucx|inproc)://\S+"
#: Seconds until a scheduler must have answered.
_CONNECT_SECONDS = 30


def check_address(address: str) -> None:
    """Raise UserError for a text that cannot be the address of a scheduler."""
    if re.fullmatch(_ADDRESS, address) is None:
        raise UserError(f"{address!r} is no address of a Dask scheduler: use tcp://HOST:PORT")


class Workers(AbstractContextManager["Workers"], ABC):
    """Carry out tasks; a context manager that ends the processes that it has started."""

    @abstractmethod
    def submit(self, task: Task) -> Future[dict[str, Any]]:
        """Start a task, whose result is that of :func:`~cdu_synth.sweep.task.perform`."""

    @property
    @abstractmethod
    def count(self) -> int:
        """Return the number of tasks that run at the same time."""


class LocalWorkers(Workers):
    """Pool of ``jobs`` processes of this machine, which end with their tasks when this process ends for any reason."""

    def __init__(self, jobs: int) -> None:
        self._jobs = jobs
        self._pool: ProcessPoolExecutor | None = None

    def submit(self, task: Task) -> Future[dict[str, Any]]:
        """Implement :class:`Workers`. A pool in which a process has died is replaced."""
        if self._pool is None:
            self._pool = processes(self._jobs)
        try:
            return self._pool.submit(perform, task.work, task.versions, task.what, task.attachment)
        except BrokenExecutor:
            self._pool = None
            return self.submit(task)

    @property
    def count(self) -> int:
        """Implement :class:`Workers`."""
        return self._jobs

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Wait for running tasks, unless an exception is propagating."""
        if self._pool is not None:
            self._pool.shutdown(wait=kind is None, cancel_futures=kind is not None)


class ClusterWorkers(Workers):
    """The workers of a Dask cluster.

    Parameters
    ----------
    address
        Address of the scheduler, ``tcp://HOST:PORT``.

    Raises MissingToolError if Dask is not installed, UserError if there is no scheduler, if it has no workers, or if its
    workers run several tasks in one process: simulators are configured by the environment of the process.
    """

    def __init__(self, address: str) -> None:
        try:
            from distributed import Client
        except ModuleNotFoundError as error:
            raise missing(error.name, "cluster") from None
        check_address(address)
        try:
            self._client = Client(address, timeout=_CONNECT_SECONDS, set_as_default=False)
        except (OSError, ValueError, TimeoutError) as error:
            raise UserError(f"no Dask scheduler answers at {address} ({error}): start one with `dask scheduler`") from None
        threads = list(self._client.nthreads().values())
        if not threads or max(threads) > 1:
            self._client.close()
            state = "workers with several threads" if threads else "no workers"
            raise UserError(f"the cluster at {address} has {state}: start some with `dask worker {address} --nthreads 1`")
        self._executor: Executor = self._client.get_executor()
        self._shared: dict[Work, Any] = {}

    def submit(self, task: Task) -> Future[dict[str, Any]]:
        """Implement :class:`Workers`. Kinds of measurements, which may be large, are sent to every worker once."""
        return self._executor.submit(_perform_packed, self._packed(task.work), task.versions, task.what, task.attachment)

    def _packed(self, work: Work) -> Any:
        """Return the pickled object on the workers; unpickling it there would delay their answers to the scheduler."""
        if work not in self._shared:
            self._shared[work] = self._client.scatter(pickle.dumps(work), broadcast=True, hash=False)
        return self._shared[work]

    @property
    def count(self) -> int:
        """Implement :class:`Workers`; the number changes as the cluster grows and shrinks."""
        return max(1, len(self._client.nthreads()))

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Cancel waiting tasks; the cluster keeps running."""
        self._executor.shutdown(wait=False)
        self._client.close()


def _perform_packed(packed: bytes, versions: Mapping[str, str], what: Mapping[str, Any], attachment: str) -> dict[str, Any]:
    """Do :func:`~cdu_synth.sweep.task.perform` with pickled work."""
    return perform(pickle.loads(packed), versions, what, attachment)
