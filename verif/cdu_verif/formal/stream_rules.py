"""Checker of the stream rules, bound to every stream port of a device.

A transfer happens when valid and ready are high. Valid and payload hold until the transfer; valid never waits for ready;
ready may depend on valid. Inputs are assumed to keep the rules, outputs must keep them (``harness/stream_rules.sv``).
"""

from __future__ import annotations

from collections.abc import Mapping

from cdu_verif.formal.binding import instance
from cdu_verif.formal.device import Device, Stream, harness

#: Cells that end a path within a cycle, in the form that Yosys' ``%ci`` takes behind its first ``-``.
REGISTERS = ",-".join(("$dff", "$dffe", "$dffsr", "$dffsre"))


def checkers(device: Device, assert_outputs: bool = True) -> str:
    """Return instances of the checker at all streams; without ``assert_outputs`` only the assumptions about the inputs.

    A stream with an output ``abort`` may lose its valid with it, as with a reset.
    """
    names = {port["name"] for port in device.ports if port["direction"] == "output"}

    def end(stream: Stream) -> str:
        abort = f"{stream.name.rpartition('__')[0]}__abort"
        return f"rst | {abort}" if abort in names else "rst"

    def bound(stream: Stream) -> str:
        parameters = {"WIDTH": max(1, stream.width), "SENDER": int(not stream.received)}
        signals = {role: stream.signal(role) for role in ("valid", "ready", "payload")}
        return instance("stream_rules", parameters, {"rst": end(stream), **signals}, f"rules_{stream.name}")

    return "".join(bound(stream) for stream in device.streams if stream.received or assert_outputs)


def stream_harness(device: Device, resets: bool = True, helper: str = "", body: str = "") -> str:
    """Return a harness in which every stream port of the device has its checker.

    The cover of an output requires that valid rises and stays although ready has never been high. ``helper`` is an invariant
    about probes, in Verilog, that makes the rules inductive; ``body`` has other assertions and assumptions. Raises ValueError
    for a device without an output to check.
    """
    if not outputs(device):
        raise ValueError(f"{device.name} has no stream that it sends")
    invariant = f"  always @* if (started) helper: assert ({helper});\n" if helper else ""
    return harness(device, checkers(device) + invariant + body, resets=resets)


def with_assumptions(device: Device, body: str, free: Mapping[str, int] | None = None, resets: bool = True) -> str:
    """Return a harness with ``body`` whose input streams keep the rules; ``free`` is that of :func:`harness`."""
    return harness(device, checkers(device, assert_outputs=False) + body, free, resets)


def independence_script(device: Device) -> str:
    """Return Yosys commands that fail if valid of an output stream depends on its ready without a register in between.

    The cone is followed in the netlist through everything but registers; memories are converted to registers and multiplexers
    before.
    """
    lines = [f"read_verilog {device.name}.v", f"hierarchy -check -top {device.name}", "proc", "flatten", "memory", "opt_clean"]
    for stream in outputs(device):
        valid, ready = stream.signal("valid"), stream.signal("ready")
        lines += [f"select -set cone o:{valid} %ci*:-{REGISTERS}", f"select -assert-none @cone i:{ready} %i"]
    return "\n".join([*lines, ""])


def outputs(device: Device) -> tuple[Stream, ...]:
    """Return the streams that the device sends and whose receiver can stall it."""
    return tuple(stream for stream in device.streams if not stream.received and {"valid", "ready"} <= set(stream.signals))
