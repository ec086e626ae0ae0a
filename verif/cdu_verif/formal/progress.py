"""Proofs of progress: if every input is offered and every output accepted, data move within a known number of cycles."""

from __future__ import annotations

from cdu_spec.geometry import BLOCK_SIDE
from cdu_spec.modes import Mode

from cdu_verif.formal.binding import concat, instance
from cdu_verif.formal.device import BoundDevice
from cdu_verif.formal.stream_rules import with_assumptions


def progress_harness(device: BoundDevice, cycles: int, watched: tuple[str, ...] = (), limits: str = "") -> str:
    """Return a harness: once all inputs stay valid and all outputs ready, one of ``watched`` transfers within ``cycles``.

    Before that moment, everything is free. Without ``watched``, any stream will do. ``limits`` are assumptions, in Verilog,
    about the inputs.
    """
    offered = [
        stream.signal("valid" if stream.received else "ready")
        for stream in device.streams
        if ("valid" if stream.received else "ready") in stream.signals
    ]
    moving = [stream for stream in device.streams if stream.name in watched or not watched]
    transfer = " | ".join(f"({stream.signal('valid')} & {stream.signal('ready')})" for stream in moving)
    parameters = {"CYCLES": cycles, "STREAMS": len(offered)}
    ports = {"offered": concat(offered), "transfer": transfer}
    body = instance("progress", parameters, ports, f"{'_'.join(watched) or 'something'}_moves")
    return with_assumptions(device, body + limits)


def job_progress_harness(device: BoundDevice, cycles: int) -> str:
    """Return :func:`progress_harness` for a block with a stream of jobs: counts are at least 1, beats whole blocks."""
    mode, beats = device.field("job__payload", "mode"), device.field("job__payload", "beats")
    limits = [f"assume ({device.field('job__payload', name)} != 0);" for name in ("beats", "row_beats", "channel_rows")]
    limits.append(f"assume ({mode} >= {min(Mode):d} && {mode} <= {max(Mode):d} && {beats} % {BLOCK_SIDE} == 0);")
    return progress_harness(device, cycles, limits=f"  always @* begin {' '.join(limits)} end\n")
