"""Nothing hangs: when every input is offered and every output accepted, data move within a known number of cycles."""

from __future__ import annotations

from cdu_verif.formal.device import Device
from cdu_verif.formal.stream_rules import with_assumptions


def progress_harness(device: Device, cycles: int, watched: str = "o", constant: tuple[str, ...] = ()) -> str:
    """From any moment on all inputs stay valid and all outputs ready; ``watched`` then transfers at least every ``cycles``.

    Before that moment, everything is free. Inputs in ``constant`` never change.
    """
    own = {stream.name: stream for stream in device.streams}
    calm = [
        f"assume ({stream.signal('valid' if stream.received else 'ready')});"
        for stream in device.streams
        if ("valid" if stream.received else "ready") in stream.roles
    ]
    transfer = f"{own[watched].signal('valid')} & {own[watched].signal('ready')}"
    body = [
        "  (* anyseq *) wire settles;",
        "  reg settled = 0;",
        "  wire calm = settled | settles;",
        "  always @(posedge clk) settled <= calm;",
        f"  always @* if (calm) begin assume (~reset); {' '.join(calm)} end",
        f"  reg [{cycles.bit_length()}:0] cycles_waited = 0;",
        f"  always @(posedge clk) cycles_waited <= ({transfer}) | ~calm | rst ? 0 : cycles_waited + 1;",
        f"  always @* {watched}_moves: assert (cycles_waited < {cycles});",
    ]
    for name in constant:
        width = next(port["width"] for port in device.ports if port["name"] == name)
        body.append(f"  (* anyconst *) wire [{width - 1}:0] constant_{name};\n  always @* assume ({name} == constant_{name});")
    return with_assumptions(device, "\n".join(body) + "\n")
