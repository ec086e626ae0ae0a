"""Errors of the driver, each with its cause and a remedy."""

from __future__ import annotations

from collections.abc import Iterable

from cdu_spec.channel_block import ERROR_FLAGS
from cdu_tools.errors import UserError

#: Remedies for each error.
REMEDIES = {
    "early_last": "give the port all values or bytes of the job before TLAST",
    "late_last": "end the packet of a job with TLAST where the job ends",
    "keep": "send full transfers, and a last one whose TKEEP is ones, then zeros; scales whole",
    "bad_job": "use a mode that MODES shows and counts that fit it",
    "bad_length": "check where the payload was cut, and the shape of the tensor",
    "queue_full": "wait until a job has ended",
    "busy_write": "use the other shift table, or wait until its jobs have ended",
    "nonfinite": "look for infinity and NaN in the tensor",
    "scale_missing": "give one scale for every channel that begins in the job",
    "scale_surplus": "give no more scales than channels begin in the job",
    "scale_overflow": "wait for STATUS.scale_space, or use the scale port",
    "timeout": "look which port does not move, or allow more cycles in WATCHDOG",
    "aborted": "give the jobs to the queue again",
    "bad_scale": "look for zeros, infinity, NaN, and more significand bits than NUMBERS says among the scales",
    "scale_source": "name the source of every job's scales in MODE.scales",
    "bad_head": "check where the payload comes from: it is not what was compressed",
    "payload_length": "look whether the payloads of two jobs have changed places, or were cut elsewhere",
    "bad_crc": "read the payload again from where it is kept, or compress the tensor again",
}
_MEANINGS = dict(ERROR_FLAGS)


class DriverError(UserError):
    """Base of all errors of the driver."""


class WrongUnitError(DriverError):
    """No unit was found, or none that this driver knows."""


class RecoveryError(DriverError):
    """The channel does not become idle."""


class FlaggedError(DriverError):
    """Bits of ERRORS were set; ``flags`` has their names."""

    def __init__(self, what: str, flags: Iterable[str]) -> None:
        self.flags = tuple(flags)
        super().__init__(what + ": " + "; ".join(f"{flag}: {_MEANINGS[flag]} ({REMEDIES[flag]})" for flag in self.flags))


class JobRefusedError(FlaggedError):
    """The unit rejected a job; earlier jobs continue."""


class JobLostError(FlaggedError):
    """An error affected jobs under way. All jobs of the channel are lost, and the channel is ready for new ones."""


class JobFailedError(JobLostError):
    """An error affected one job, which alone is lost: earlier and later jobs continue."""
