"""The registers of a unit for debuggers: CMSIS-SVD 1.3 (Arm), one peripheral with a cluster for each block."""

from __future__ import annotations

from xml.etree import ElementTree
from xml.etree.ElementTree import Element, SubElement

from cdu_spec.config import CduConfig
from cdu_spec.register_blocks import plain, register_blocks
from cdu_spec.register_documents import identifier
from cdu_spec.register_types import BLOCK_BYTES, REGISTER_BITS, REGISTER_BYTES, Access, Channel, Field, Register
from cdu_spec.registers import MAJOR, MINOR

#: Access by the words of CMSIS-SVD, which are those of IP-XACT.
ACCESS = {Access.RO: "read-only", Access.RW: "read-write", Access.WO: "write-only", Access.W1C: "read-write"}
#: Bytes of addresses that the registers of a unit take.
REGISTERS_BYTES = BLOCK_BYTES * (2 + len(Channel))
_SCHEMA = "http://www.w3.org/2001/XMLSchema-instance"


def svd(config: CduConfig) -> str:
    """Return the text of NAME.svd. The peripheral CDU is at address 0; the builder of a system replaces this address."""
    device = Element("device", {"schemaVersion": "1.3", "xmlns:xs": _SCHEMA, "xs:noNamespaceSchemaLocation": "CMSIS-SVD.xsd"})
    _texts(
        device,
        name=config.unit_name,
        version=f"{MAJOR}.{MINOR}",
        description=f"Compression/decompression unit {config.unit_name}",
        addressUnitBits=8,
        width=REGISTER_BITS,
        size=REGISTER_BITS,
        resetMask=f"{(1 << REGISTER_BITS) - 1:#x}",
    )
    peripheral = SubElement(SubElement(device, "peripherals"), "peripheral")
    _texts(peripheral, name="CDU", description="Registers of the unit", baseAddress="0x0")
    _texts(
        SubElement(peripheral, "addressBlock"),
        offset="0x0",
        size=f"{REGISTERS_BYTES:#x}",
        usage="registers",
    )
    registers = SubElement(peripheral, "registers")
    for block in register_blocks(config):
        place = registers
        if block.name is not None:
            place = SubElement(registers, "cluster")
            _texts(place, name=block.name, description=block.description, addressOffset=f"{block.base:#x}")
        for entry in block.registers:
            _register(place, entry)
    ElementTree.indent(device)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ElementTree.tostring(device, encoding="unicode") + "\n"


def _register(place: Element, entry: Register) -> None:
    element = SubElement(place, "register")
    if entry.count > 1:
        _texts(element, dim=entry.count, dimIncrement=REGISTER_BYTES)
    _texts(
        element,
        name=entry.name + ("[%s]" if entry.count > 1 else ""),
        description=plain(entry.description),
        addressOffset=f"{entry.offset:#x}",
        access=ACCESS[entry.access],
        resetValue=f"{entry.reset:#x}",
    )
    if entry.access is Access.W1C:
        _texts(element, modifiedWriteValues="oneToClear")
    fields = SubElement(element, "fields")
    for part in entry.fields:
        _field(fields, part)


def _field(fields: Element, part: Field) -> None:
    element = SubElement(fields, "field")
    _texts(element, name=part.name, description=plain(part.description), bitOffset=part.low, bitWidth=part.width)
    if part.values:
        named = SubElement(element, "enumeratedValues")
        for name, number in part.values.items():
            _texts(SubElement(named, "enumeratedValue"), name=identifier(name), value=number)


def _texts(parent: Element, **texts: object) -> None:
    """Add children with nothing but a text, in the order of the schema."""
    for tag, text in texts.items():
        SubElement(parent, tag).text = str(text)
