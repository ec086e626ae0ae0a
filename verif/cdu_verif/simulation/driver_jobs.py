"""Jobs of codecs in the terms of the reference driver."""

from __future__ import annotations

from actcodec.backends.job import Job
from cdu_driver import Job as DriverJob


def driver_job(job: Job, data: bytes | memoryview) -> DriverJob:
    """A codec's job and its data: values when compressing, payload when decompressing."""
    return DriverJob(
        *(job.mode, job.beats, job.row_beats, job.channel_rows),
        data=data,
        scales=scale_bytes(job) if job.mode.has_scales else b"",
        shifts=job.shifts,
        settings=job.settings,
        offsets=offset_bytes(job),
        coder=job.coder,
        point=job.point,
        mx=job.mx,
    )


def scale_bytes(job: Job) -> bytes:
    """The scales of a job, little-endian float32."""
    raw: bytes = job.scales.numpy().astype("<f4").tobytes()
    return raw


def offset_bytes(job: Job) -> bytes:
    """The offsets of a job, little-endian int16; none in modes without them."""
    raw: bytes = job.offsets.numpy().astype("<i2").tobytes() if job.mode.has_offsets else b""
    return raw
