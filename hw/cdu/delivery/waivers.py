"""Waivers of the warnings that Verilator's lint gives for delivered Verilog, each for one line and with its reason."""

from __future__ import annotations

from cdu.delivery.unread_bits import unread

_HEAD = """\
`verilator_config

// Warnings that are allowed in {name}.v: `verilator --lint-only -Wall {name}.vlt {name}.v` finds no other.
// They belong to lines of the file as it was generated.
"""
_MISNAMED = """
// The top module has a name of its own in a design with the modules of others, the file that of the configuration.
"""
_UNREAD = """
// A module that needs some fields of a payload has all of it at its port; of a result others may need some bits.
"""


def waivers(name: str, top: str, text: str) -> str:
    """Return the text of NAME.vlt for the Verilog ``text`` of NAME.v, whose top module is ``top``."""

    def allowed(rule: str, line: int, reason: str = "") -> str:
        return f'lint_off -rule {rule} -file "*{name}.v" -lines {line}{reason}\n'

    parts = [_HEAD.format(name=name)]
    if top != name:
        before, _, _ = text.partition(f"\nmodule {top} ")
        parts += [_MISNAMED, allowed("DECLFILENAME", before.count("\n") + 2)]
    if bits := [allowed("UNUSEDSIGNAL", line, f"  // {reason}") for line, reason in unread(text)]:
        parts += [_UNREAD, *bits]
    return "".join(parts)
