"""A compiled unit with its driver, in ordinary functions."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from actcodec.backends.job import Job
from cdu_driver import Driver, JobQueue, Result, run
from cdu_spec.config import CduConfig

from cdu_verif.backends.compiled import library
from cdu_verif.backends.compiled.device import CompiledDevice
from cdu_verif.backends.compiled.unit import CompiledUnit
from cdu_verif.simulation.driver_jobs import driver_job


class Worker:
    """One unit that does one job at a time.

    Parameters
    ----------
    config
        Configuration of the unit; it is compiled when it is not in the cache.
    """

    def __init__(self, config: CduConfig) -> None:
        design = library.generated(config)
        self.unit = CompiledUnit(library.library(design), design.streams)
        self._driver = Driver(CompiledDevice(self.unit))
        run(self._driver.open())

    def compress(self, job: Job, values: npt.NDArray[np.generic]) -> Result:
        """The payload of values (job.beats, 8), any dtype of their width."""
        return self._run(self._driver.compress, job, values)

    def decompress(self, job: Job, payload: npt.NDArray[np.uint8]) -> Result:
        """The beats of a payload, as bytes."""
        return self._run(self._driver.decompress, job, payload)

    @staticmethod
    def _run(channel: JobQueue, job: Job, data: npt.NDArray[np.generic]) -> Result:
        return run(channel.run([driver_job(job, data.data)]))[0]
