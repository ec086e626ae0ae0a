"""The registers of a unit in SystemRDL 2.0 (Accellera), from which tools make IP-XACT, UVM register models, HTML and more."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from cdu_spec.config import CduConfig
from cdu_spec.register_blocks import RegisterBlock, plain, register_blocks
from cdu_spec.register_documents import identifier
from cdu_spec.register_types import REGISTER_BITS, REGISTER_BYTES, Access, Field, Register
from cdu_spec.registers import MAJOR, MINOR

#: Access of software and of the unit to a field. The unit changes read-only and sticky fields.
_ACCESS = {
    Access.RO: "sw = r; hw = w;",
    Access.RW: "sw = rw; hw = r;",
    Access.WO: "sw = w; hw = r;",
    Access.W1C: "sw = rw; hw = w; onwrite = woclr;",
}
_CONSTANT = "sw = r; hw = na;"


def systemrdl(config: CduConfig, top: str, taken: Collection[str] = ()) -> str:
    """Return the text of NAME.rdl: an address map called ``top``, a register file for each block but the global one.

    Fields whose names are ``taken`` in the target language of the text get an underscore after their name.
    """
    lines = [
        f"// Registers of {config.unit_name}, version {MAJOR}.{MINOR} of the map",
        f"addrmap {top} {{",
        f'    name = "Compression/decompression unit {config.unit_name}";',
        "    lsb0;",
        f"    default regwidth = {REGISTER_BITS};",
        f"    default accesswidth = {REGISTER_BITS};",
    ]
    for block in register_blocks(config):
        inside = [line for entry in block.registers for line in _register(block, entry, taken)]
        if block.name is not None:
            about = [f"    desc = {_quoted(block.description)};"]
            inside = ["", "regfile {", *about, *(f"    {line}" for line in inside), f"}} {block.name} @ {block.base:#x};"]
        lines += [f"    {line}".rstrip() for line in inside]
    return "\n".join([*lines, "};", ""])


def _register(block: RegisterBlock, entry: Register, taken: Collection[str]) -> Iterator[str]:
    yield ""
    yield "reg {"
    yield f"    desc = {_quoted(entry.description)};"
    for part in entry.fields:
        name = f"{part.name}_" if part.name in taken else part.name
        yield from (f"    {line}" for line in _field(name, _rights(block, entry), part))
    several, apart = (f"[{entry.count}]", f" += {REGISTER_BYTES:#x}") if entry.count > 1 else ("", "")
    yield f"}} {entry.name}{several} @ {entry.offset:#x}{apart};"


def _rights(block: RegisterBlock, entry: Register) -> str:
    if entry.name in block.constant:
        return _CONSTANT
    return _ACCESS[entry.access]


def _field(name: str, rights: str, part: Field) -> Iterator[str]:
    if part.values:
        named = " ".join(f"{identifier(value)} = {number};" for value, number in part.values.items())
        yield f"enum {name}_values {{ {named} }};"
    encode = f" encode = {name}_values;" if part.values else ""
    high = part.low + part.width - 1
    yield f"field {{ {rights}{encode} desc = {_quoted(part.description)}; }} {name}[{high}:{part.low}] = {part.reset:#x};"


def _quoted(text: str) -> str:
    return '"' + plain(text).replace("\\", "\\\\").replace('"', '\\"') + '"'
