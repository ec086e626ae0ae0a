"""A unit as a component in IP-XACT (IEEE 1685-2014): bus interfaces, registers, ports, parameters and files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from xml.etree import ElementTree
from xml.etree.ElementTree import Element, SubElement

from cdu_spec.config import CduConfig
from cdu_spec.register_blocks import plain, register_blocks
from cdu_spec.register_documents import identifier
from cdu_spec.register_types import REGISTER_BITS, REGISTER_BYTES, Access, Field, Register
from cdu_spec.svd import ACCESS, REGISTERS_BYTES

from cdu.delivery.fusesoc import VENDOR
from cdu.delivery.interfaces import AXI4, AXI4_LITE, AXI4_STREAM, Interface, interfaces

_SPACE = "http://www.accellera.org/XMLSchema/IPXACT/1685-2014"
#: Vendor, library, name and version of the definitions of buses: Arm's own; IEEE and Arm define none for single signals, so
#: these are the ones that Xilinx introduced.
_BUSES = {
    AXI4: ("amba.com", "AMBA4", "AXI4", "r0p0_0"),
    AXI4_LITE: ("amba.com", "AMBA4", "AXI4-Lite", "r0p0_0"),
    AXI4_STREAM: ("amba.com", "AMBA4", "AXI4Stream", "r0p0_1"),
}
_VLNV = ("vendor", "library", "name", "version")
_MAP, _MEMORY, _FILES = "registers", "memory", "rtl"


def ipxact(name: str, top: str, version: str, ports: Sequence[Mapping[str, Any]], config: CduConfig) -> str:
    """Return the text of NAME.xml for the ports that a manifest lists; its files are NAME.v and NAME.sdc."""
    root = Element("ipxact:component", {"xmlns:ipxact": _SPACE})
    _texts(root, **dict(zip(_VLNV, (VENDOR, "units", name, version), strict=True)))
    found = list(interfaces(ports, config))
    buses = _add(root, "busInterfaces")
    for interface in found:
        _interface(buses, interface, config)
    pairs = list(config.clock_ports.values())
    single = [("clock", "CLK", clock) for clock, _ in pairs] + [("reset", "RST", reset) for _, reset in pairs]
    for bus, logical, port in [*single, ("interrupt", "INTERRUPT", "irq")]:
        mode = "master" if bus == "interrupt" else "slave"
        bound = _bus(buses, port, ("xilinx.com", "signal", bus, "1.0"), {logical: port}, mode)
        if bus == "reset":
            _parameters(bound, {"POLARITY": f"ACTIVE_{config.reset_active.upper()}"}, f"{port}_")
    if any(interface.protocol == AXI4 for interface in found):
        widths = {port["name"]: port["width"] for port in ports}
        (master,) = (interface for interface in found if interface.protocol == AXI4)
        space = _add(_add(root, "addressSpaces"), "addressSpace")
        _texts(
            space,
            name=_MEMORY,
            range=f"2**{widths[master.signals['ARADDR']]}",
            width=widths[master.signals["RDATA"]],
            addressUnitBits=8,
        )
    _registers(_add(root, "memoryMaps"), config)
    _model(_add(root, "model"), top, ports)
    files = _add(_add(root, "fileSets"), "fileSet")
    _texts(files, name=_FILES)
    for file, kind in ((f"{name}.v", "verilogSource"), (f"{name}.sdc", "SDC")):
        _texts(_add(files, "file"), name=file, fileType=kind)
    _texts(root, description=f"Compression/decompression unit {name}")
    _parameters(root, config.to_dict())
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def _interface(buses: Element, interface: Interface, config: CduConfig) -> None:
    signals = {**interface.signals, "ACLK": interface.clock}
    if config.reset_active == "low":
        signals["ARESETn"] = interface.reset
    mode = "slave" if interface.receives else "master"
    place = {AXI4: _MEMORY, AXI4_LITE: _MAP, AXI4_STREAM: None}[interface.protocol]
    _bus(buses, interface.name, _BUSES[interface.protocol], signals, mode, place)


def _bus(
    buses: Element,
    name: str,
    bus: tuple[str, str, str, str],
    signals: Mapping[str, str],
    mode: str,
    place: str | None = None,
) -> Element:
    """Add a bus interface with its ports, and return it; ``place`` is its memory map or address space."""
    element = _add(buses, "busInterface")
    _texts(element, name=name)
    vendor, library, kind, version = bus
    SubElement(element, "ipxact:busType", dict(zip(_VLNV, bus, strict=True)))
    abstraction = _add(_add(element, "abstractionTypes"), "abstractionType")
    rtl = dict(zip(_VLNV, (vendor, library, f"{kind}_rtl", version), strict=True))
    SubElement(abstraction, "ipxact:abstractionRef", rtl)
    maps = _add(abstraction, "portMaps")
    for logical, port in signals.items():
        ends = _add(maps, "portMap")
        _texts(_add(ends, "logicalPort"), name=logical)
        _texts(_add(ends, "physicalPort"), name=port)
    role = _add(element, mode)
    if place is not None:
        reference = "memoryMapRef" if mode == "slave" else "addressSpaceRef"
        SubElement(role, f"ipxact:{reference}", {reference: place})
    return element


def _registers(maps: Element, config: CduConfig) -> None:
    memory_map = _add(maps, "memoryMap")
    _texts(memory_map, name=_MAP)
    block = _add(memory_map, "addressBlock")
    _texts(block, name=_MAP, baseAddress="'h0", range=REGISTERS_BYTES, width=REGISTER_BITS, usage="register")
    files = [entry for entry in register_blocks(config) if entry.name is not None]
    for one in register_blocks(config):
        if one.name is None:
            for entry in one.registers:
                _register(block, entry)
    for one in files:
        file = _add(block, "registerFile")
        _texts(file, name=one.name, description=one.description, addressOffset=f"'h{one.base:x}", range=one.size)
        for entry in one.registers:
            _register(file, entry)
    _texts(memory_map, addressUnitBits=8)


def _register(place: Element, entry: Register) -> None:
    element = _add(place, "register")
    _texts(element, name=entry.name, description=plain(entry.description))
    if entry.count > 1:
        _texts(element, dim=entry.count)
    _texts(element, addressOffset=f"'h{entry.offset:x}", size=8 * REGISTER_BYTES)
    for part in entry.fields:
        _field(element, part, entry)


def _field(place: Element, part: Field, entry: Register) -> None:
    element = _add(place, "field")
    _texts(element, name=part.name, description=plain(part.description), bitOffset=part.low)
    _texts(_add(_add(element, "resets"), "reset"), value=f"'h{part.reset:x}")
    _texts(element, bitWidth=part.width, volatile="true", access=ACCESS[entry.access])
    if part.values:
        named = _add(element, "enumeratedValues")
        for name, number in part.values.items():
            _texts(_add(named, "enumeratedValue"), name=identifier(name), value=number)
    if entry.access is Access.W1C:
        _texts(element, modifiedWriteValue="oneToClear")


def _model(model: Element, top: str, ports: Sequence[Mapping[str, Any]]) -> None:
    view = _add(_add(model, "views"), "view")
    _texts(view, name=_FILES, componentInstantiationRef=_FILES)
    instance = _add(_add(model, "instantiations"), "componentInstantiation")
    _texts(instance, name=_FILES, language="verilog", moduleName=top)
    _texts(_add(instance, "fileSetRef"), localName=_FILES)
    listed = _add(model, "ports")
    for port in ports:
        element = _add(listed, "port")
        _texts(element, name=port["name"])
        wire = _add(element, "wire")
        _texts(wire, direction="in" if port["direction"] == "input" else "out")
        if port["width"] > 1:
            _texts(_add(_add(wire, "vectors"), "vector"), left=port["width"] - 1, right=0)


def _parameters(place: Element, values: Mapping[str, Any], prefix: str = "") -> None:
    """Add parameters with fixed values: integers, and text for everything else."""
    parameters = _add(place, "parameters")
    for name, value in values.items():
        number = isinstance(value, int)
        kind = {"parameterId": f"{prefix}{name}", "resolve": "immediate", "type": "int" if number else "string"}
        text = ",".join(value) if isinstance(value, list) else value
        _texts(SubElement(parameters, "ipxact:parameter", kind), name=name, value=int(text) if number else f'"{text}"')


def _add(parent: Element, tag: str) -> Element:
    return SubElement(parent, f"ipxact:{tag}")


def _texts(parent: Element, **texts: object) -> None:
    """Add children with nothing but a text, in the order of the schema."""
    for tag, text in texts.items():
        _add(parent, tag).text = str(text)
