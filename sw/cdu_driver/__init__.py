"""Reference driver of a unit: job queue, programming sequence, error recovery; and a model of the cycles that jobs take.

The driver uses a :class:`Device`, an interface to registers and streams: a simulation, compiled RTL, or a board. It
depends on cdu_spec and cdu_tools only.

    driver = Driver(device)
    await driver.open()
    packets = await driver.compress.run([job, ...])      # bytes of every job, in order

For a device that never waits for an event loop, :func:`run` runs these coroutines from ordinary functions.
"""

from cdu_driver.cycles import job_cycles
from cdu_driver.device import BusError, Device
from cdu_driver.driver import Driver
from cdu_driver.errors import DriverError, JobFailedError, JobLostError, JobRefusedError, RecoveryError, WrongUnitError
from cdu_driver.job import Job
from cdu_driver.queue import Counters, JobQueue, Result
from cdu_driver.ring import open_ring, stop_ring
from cdu_driver.synchronous import run

__all__ = [
    "BusError",
    "Counters",
    "Device",
    "Driver",
    "DriverError",
    "Job",
    "JobFailedError",
    "JobLostError",
    "JobQueue",
    "JobRefusedError",
    "RecoveryError",
    "Result",
    "WrongUnitError",
    "job_cycles",
    "open_ring",
    "run",
    "stop_ring",
]
