"""Property modules of a user, bound to the AXI interfaces of a unit by the names of their ports.

A module fits an interface when its inputs are a clock, a reset and signals of the protocol, with any prefix: ``i_axi_awvalid``
is AWVALID. Signals that the interface lacks are 0, and TSTRB is TKEEP, as AXI says. Widths are given to parameters with the
usual names. A module with ``slave``, ``subordinate``, ``receiver`` or ``sink`` in its name is bound to what the unit receives,
one with ``master``, ``manager``, ``transmitter`` or ``source`` to what it sends, any other to both.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from cdu.delivery.interfaces import AXI4, AXI4_LITE, AXI4_STREAM, Interface, interfaces
from cdu_spec.config import CduConfig
from cdu_spec.config_rules import ConfigError
from cdu_tools.errors import UserError
from cdu_tools.texts import read_text

from cdu_verif.formal import binding
from cdu_verif.formal.device import BoundDevice, harness
from cdu_verif.formal.proof import Property
from cdu_verif.formal.properties import block_device
from cdu_verif.formal.solver import BOUNDED, Sby

#: Cycles from reset for which properties of a whole unit are proven.
DEPTH = 10
_RECEIVED, _SENT = ("slave", "subordinate", "receiver", "sink"), ("master", "manager", "transmitter", "source")
#: A signal that tells protocols apart.
_MARKS = {AXI4_STREAM: "TVALID", AXI4: "WLAST", AXI4_LITE: "AWVALID"}
_ABSENT = (
    *(f"{channel}{name}" for channel in ("AW", "AR") for name in ("LOCK", "CACHE", "PROT", "QOS", "REGION", "USER")),
    *("WUSER", "BUSER", "RUSER", "TID", "TDEST", "TUSER", "TSTRB"),
)
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_HEAD = re.compile(
    r"^\s*module\s+(\w+)\s*(?:#\s*\((?P<parameters>.*?)\)\s*)?\((?P<ports>[^;]*)\)\s*;", re.MULTILINE | re.DOTALL
)
_PORT = re.compile(
    r"\b(input|output)\b(?:\s+(?:wire|reg|logic|var|signed))*\s*(?:\[[^\]]*\]\s*)*"
    r"((?:\w+\s*,?\s*)+?)(?=\binput\b|\boutput\b|$)"
)


@dataclass(frozen=True)
class PropertyModule:
    """A module of the user: its name, the names of its inputs and parameters, and its file."""

    name: str
    inputs: tuple[str, ...]
    parameters: tuple[str, ...]
    file: Path


def files(folder: Path) -> list[Path]:
    """Return the SystemVerilog and Verilog files of a folder. Raises UserError for a folder without one."""
    found = sorted(path for path in folder.glob("*") if path.suffix in (".sv", ".v"))
    if not found:
        raise UserError(f"--properties {folder} has no .sv or .v file: give a folder with modules of properties")
    return found


def modules(folder: Path) -> Iterator[PropertyModule]:
    """Yield the modules in the files of a folder, whose ports have to be declared in the heads of the modules."""
    for path in files(folder):
        for head in _HEAD.finditer(_COMMENT.sub("", read_text(path))):
            ports = re.sub(r"\s+", " ", head["ports"])
            inputs = tuple(name for way, names in _PORT.findall(ports) if way == "input" for name in re.findall(r"\w+", names))
            yield PropertyModule(head[1], inputs, _parameters(head["parameters"] or ""), path)


def _parameters(text: str) -> tuple[str, ...]:
    """Return the names of the parameters in the head of a module, without those that are local to it."""
    first, *others = re.split(r"\b(parameter|localparam)\b", text)
    given = [first, *(part for kind, part in zip(others[::2], others[1::2], strict=True) if kind == "parameter")]
    return tuple(name for part in given for name in re.findall(r"(\w+)\s*=(?!=)", part))


def instances(folder: Path, ports: Sequence[Mapping[str, Any]], config: CduConfig) -> dict[str, str]:
    """Return instances of all modules that fit interfaces of a unit, as Verilog, by a name for each.

    Raises UserError if none fits, and for a module of AXI with an input that is no signal of AXI.
    """
    found = list(interfaces(ports, config))
    widths = {port["name"]: port["width"] for port in ports}
    bound = {
        f"{module.name}_{interface.name}": _instance(module, interface, widths, config)
        for module in modules(folder)
        for interface in found
        if _fits(module, interface)
    }
    if not bound:
        names = ", ".join(f"{interface.name} ({interface.protocol})" for interface in found) or "none"
        raise UserError(f"no module in --properties {folder} fits an interface of the unit: it has {names}")
    return bound


def properties(folder: Path, config: CduConfig) -> list[Property]:
    """Return a property for each module and interface of the unit of a configuration: its assertions hold.

    Registers begin with the initial content of the Verilog, as many modules ask for low VALIDs before the first clock edge.

    Raises ConfigError for units with several clocks, or with another reset than ``rst``, which the proofs do not have.
    """
    if config.own_clocks or config.reset_active != "high":
        raise ConfigError("--properties of proofs needs one clock and reset_active = high: use cdu verify --properties")
    block = "dma_array" if config.dma_bits else "array"
    device = partial(block_device, block, config)
    given = tuple(files(folder))
    return [
        Property(
            block,
            name,
            f"The assertions of {name} hold.",
            device,
            Sby(BOUNDED, DEPTH, partial(_harness, text=text), sources=given, initialised=True),
        )
        for name, text in instances(folder, device().ports, config).items()
    ]


def bind(folder: Path, name: str, ports: Sequence[Mapping[str, Any]], config: CduConfig) -> str:
    """Return SystemVerilog that binds all modules to the top module ``name`` in simulations."""
    return "".join(f"bind {name}{text}" for text in instances(folder, ports, config).values())


def _harness(device: BoundDevice, text: str) -> str:
    return harness(device, text, resets=False)


def _fits(module: PropertyModule, interface: Interface) -> bool:
    signals = {signal for name in module.inputs if (signal := _signal(name, interface)) is not None}
    protocol = next((kind for kind, mark in _MARKS.items() if any(name.upper().endswith(mark) for name in module.inputs)), None)
    name = module.name.lower()
    received, sent = (any(word in name for word in words) for words in (_RECEIVED, _SENT))
    return protocol == interface.protocol and bool(signals) and (received == sent or received == interface.receives)


def _signal(name: str, interface: Interface) -> str | None:
    """Return the signal of AXI that an input is called after."""
    return next((one for one in (*interface.signals, *_ABSENT) if re.fullmatch(rf"(\w*_)?{one}", name, re.IGNORECASE)), None)


def _instance(module: PropertyModule, interface: Interface, widths: Mapping[str, int], config: CduConfig) -> str:
    bound: dict[str, str] = {}
    for name in module.inputs:
        lower = name.lower()
        signal = _signal(name, interface)
        if signal is not None:
            bound[name] = interface.signals.get(signal, interface.signals["TKEEP"] if signal == "TSTRB" else "'0")
        elif "clk" in lower or "clock" in lower:
            bound[name] = interface.clock
        elif "rst" in lower or "reset" in lower:
            low = lower.endswith("n")
            bound[name] = interface.reset if low == (config.reset_active == "low") else f"!{interface.reset}"
        else:
            raise UserError(f"{module.file.name}: input {name} of {module.name} is no clock, reset or signal of AXI: remove it")
    data = widths[interface.signals["TDATA" if interface.protocol == AXI4_STREAM else "WDATA"]]
    known = {"DATA_WIDTH": data, "DW": data}
    for parameter, port in (("ADDR_WIDTH", "AWADDR"), ("AW", "AWADDR"), ("ID_WIDTH", "AWID"), ("IW", "AWID")):
        if port in interface.signals:
            known[parameter] = widths[interface.signals[port]]
    values = {name: value for name in module.parameters for end, value in known.items() if re.fullmatch(rf"(\w*_)?{end}", name)}
    text = binding.instance(module.name, values, bound, f"{module.name}_{interface.name}")
    return text.replace(",\n    .*\n", "\n")  # outputs stay open, and no name of the unit is bound by chance
