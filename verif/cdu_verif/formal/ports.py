"""Proofs of the ports of a unit: words with a count of bytes, packets cut by an abort, scales from two sources."""

from __future__ import annotations

from cdu_spec.register_types import ScaleSource

from cdu_verif.formal.binding import fields, instance
from cdu_verif.formal.device import BoundDevice
from cdu_verif.formal.stream_rules import with_assumptions

#: Number of jobs that wait in a join of scales.
_WAITING_JOBS = 9


def sender_harness(device: BoundDevice) -> str:
    """Return a harness: a job ends with a packet of which a word was accepted since the last cut; a cut's rest is shown."""
    return with_assumptions(device, instance("sender_ends", {}, fields(device, "i__payload", "last")))


def receiver_harness(device: BoundDevice, size: int) -> str:
    """Return a harness for a receiver.

    Bytes leave once, in order; no word is empty, except for a packet without bytes; a packet ends with its last byte.

    As many packets leave as come, including those without bytes: more than two cannot be inside.
    """
    body = instance("receiver_order", {"BYTES": size}, fields(device, "o__payload", "data", "count", "last"))
    return with_assumptions(device, body, {"tdata": sum(1 << 8 * place for place in range(size))})


def scale_join_harness(device: BoundDevice) -> str:
    """Return a harness that proves that the n-th packet of scales comes from the n-th job's source, and is whole."""
    parameters = {
        "REGISTERS": ScaleSource.REGISTERS,
        "PORT": ScaleSource.PORT,
        "LAST_SOURCE": max(ScaleSource),
        "CAPACITY": _WAITING_JOBS,
    }
    ports = {**fields(device, "job__payload", "source"), **fields(device, "o__payload", "last")}
    free = {name: 1 << device.offset(name, "last") for name in ("written__payload", "streamed__payload")}
    return with_assumptions(device, instance("scale_join_order", parameters, ports), free)
