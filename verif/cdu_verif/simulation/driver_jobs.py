"""Conversion of codecs' jobs to jobs of the reference driver."""

from __future__ import annotations

from typing import Any

import numpy as np
from actcodec.backends.job import Job
from cdu_driver import Job as DriverJob
from cdu_spec.affine import AffineSettings
from cdu_spec.coding import ShiftCoding, coder_of, seed_of
from cdu_spec.mx import MxSettings
from cdu_spec.registers import pack_mx, pack_quantizer


def driver_job(job: Job, data: bytes | memoryview) -> DriverJob:
    """Return the driver's job for a codec's job and its data: values when compressing, payload when decompressing."""
    return DriverJob(
        *(job.mode, job.beats, job.row_beats, job.channel_rows),
        data=data,
        scales=scale_bytes(job) if job.mode.has_scales else b"",
        shifts=job.shifts,
        how=job.how,
        offsets=offset_bytes(job),
    )


def settings_parts(job: Job) -> dict[str, Any]:
    """Return the parts of a DMA descriptor with the settings of a mode: 0 in other modes."""
    return {
        "quantizer": pack_quantizer(job.how) if isinstance(job.how, AffineSettings) else 0,
        "seed": seed_of(job.how),
        "mx_coding": pack_mx(job.how) if isinstance(job.how, MxSettings) else 0,
        "coder": coder_of(job.how),
        "point": job.how.point if isinstance(job.how, ShiftCoding) else 0,
    }


def scale_bytes(job: Job) -> bytes:
    """Return the scales of a job, little-endian float32."""
    raw: bytes = job.scales.numpy().astype("<f4").tobytes()
    return raw


def scales_with_offsets(job: Job) -> bytes:
    """Return the scales of a job in 8 bytes each: float32, offset (int16; 0 in modes without), two bytes of zeros."""
    rows = np.zeros(len(job.scales), "<f4, <i2, <i2")
    rows["f0"], rows["f1"] = job.scales.numpy(), job.offsets.numpy() if job.mode.has_offsets else 0
    return rows.tobytes()


def scales_in_memory(job: Job, channels: int) -> bytes:
    """Return the scales of a job of ``channels`` channels as a DMA engine reads them."""
    if not job.mode.has_scales:
        return b""
    raw = scales_with_offsets(job) if job.mode.has_offsets else scale_bytes(job)
    return raw[: channels * len(raw) // len(job.scales)]


def offset_bytes(job: Job) -> bytes:
    """Return the offsets of a job, little-endian int16; none in modes without them."""
    raw: bytes = job.offsets.numpy().astype("<i2").tobytes() if job.mode.has_offsets else b""
    return raw
