"""Property modules of a user, bound to the AXI interfaces of a unit by the names of their ports.

A module fits each interface that has all of its inputs, beside clocks and resets, with any prefix: ``i_axi_awvalid`` is
AWVALID. Signals that an interface may lack are 0, and TSTRB is TKEEP, as AXI says. Widths are given to parameters with the
usual names. A module with ``slave``, ``subordinate``, ``receiver`` or ``sink`` in its name is bound to what the unit receives,
one with ``master``, ``manager``, ``transmitter`` or ``source`` to what it sends, any other to both. A module that another one
of the folder instantiates is not bound itself; any other that fits no interface is an error.
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
_OF_REQUESTS = (
    *(f"{channel}{name}" for channel in ("AW", "AR") for name in ("LOCK", "CACHE", "PROT", "QOS", "REGION", "USER")),
    *("WUSER", "BUSER", "RUSER"),
)
#: Signals that an interface may lack.
_ABSENT = {AXI4_STREAM: ("TID", "TDEST", "TUSER", "TSTRB"), AXI4: _OF_REQUESTS, AXI4_LITE: _OF_REQUESTS}
#: Words in front of the last one of a name, none of which says "not".
_PREFIX = r"(?:(?!n_|not_)[^\W_]*_)*"
_CLOCK = re.compile(rf"{_PREFIX}a?(?:clk|clock)(?:_(?:i|in))?", re.IGNORECASE)
_RESET = re.compile(rf"{_PREFIX}a?(?:rst|reset)(?P<low>_?ni?)?(?:_(?:i|in|sync))*", re.IGNORECASE)
_UNDERSTOOD = "which is no clock (clk, aclk, clk_i, clock) or reset (rst, areset, rst_i, reset; low rst_n, rst_ni, aresetn)"
#: Text of a file that has no say: strings, comments, attributes.
_SILENT = re.compile(r'"(?:\\.|[^"\\])*"|//[^\n]*|/\*.*?\*/|\(\*(?!\s*\)).*?\*\)', re.DOTALL)
_MODULE = re.compile(
    r"\s*(?:(?:automatic|static)\s+)?(?P<name>\w+)\s*(?:import\b[^;]*;\s*)*(?:#\s*\((?P<parameters>[^;]*?)\)\s*)?"
    r"(?:\((?P<ports>[^;]*?)\)\s*)?;(?P<body>.*?)(?:\bendmodule\b.*|$)",
    re.DOTALL,
)
_DIRECTIONS = ("input", "output", "inout", "ref")
_DECLARATION = re.compile(rf"\b(?:{'|'.join(_DIRECTIONS)})\b[^;]*")
_INSTANCE = re.compile(r"\b(\w+)\s*(?=#\s*\(|\s\w+\s*(?:\[[^\]]*\]\s*)?\()")


@dataclass(frozen=True)
class PropertyModule:
    """A module of the user: its file and name, the names of its inputs and parameters, and those that it may instantiate."""

    file: Path
    name: str
    inputs: tuple[str, ...]
    parameters: tuple[str, ...]
    instantiated: frozenset[str]


@dataclass(frozen=True)
class Bound:
    """A module at an interface: an instance of it as Verilog, and the connections of its resets."""

    text: str
    resets: tuple[str, ...]


def files(folder: Path) -> list[Path]:
    """Return the SystemVerilog and Verilog files of a folder. Raises UserError for a folder without one."""
    found = sorted(path for path in folder.glob("*") if path.suffix in (".sv", ".v"))
    if not found:
        raise UserError(f"--properties {folder} has no .sv or .v file: give a folder with modules of properties")
    return found


def modules(folder: Path) -> Iterator[PropertyModule]:
    """Yield the modules in the files of a folder. Raises UserError for one that cannot be read and for two of one name."""
    places: dict[str, Path] = {}
    for path in files(folder):
        for text in re.split(r"\bmodule\b", _SILENT.sub(" ", read_text(path)))[1:]:
            found = _MODULE.match(text)
            if found is None:
                shown = " ".join(text[:40].split())
                raise UserError(f"{path.name}: cannot read the head of module {shown}: write a name, #(...), (...) and ;")
            name, ports, body = found["name"], found["ports"] or "", found["body"]
            if name in places:
                raise UserError(f"{places[name].name} and {path.name} both have a module {name}: rename or remove one")
            places[name] = path
            inputs = _inputs(ports)
            if not _DECLARATION.search(ports):
                declared = _inputs(",".join(_DECLARATION.findall(body)))
                inputs = [port for port in re.findall(r"\w+", ports) if port in declared]
            parameters = found["parameters"]
            if parameters is None:
                parameters = " ".join(re.findall(r"\bparameter\b[^;]*", body))
            yield PropertyModule(path, name, tuple(inputs), _parameters(parameters), frozenset(_INSTANCE.findall(body)))


def _inputs(ports: str) -> list[str]:
    """Return the names of the inputs among declarations of ports, which have the direction of the one before by default."""
    direction, found = "", []
    for port in re.sub(r"\[[^\]]*\]|=[^,]*", " ", ports).split(","):
        words = re.findall(r"\w+", port)
        direction = next((word for word in words if word in _DIRECTIONS), direction)
        if words and direction == "input":
            found.append(words[-1])
    return found


def _parameters(text: str) -> tuple[str, ...]:
    """Return the names of the parameters in the head of a module, without those that are local to it."""
    first, *others = re.split(r"\b(parameter|localparam)\b", text)
    given = [first, *(part for kind, part in zip(others[::2], others[1::2], strict=True) if kind == "parameter")]
    return tuple(name for part in given for name in re.findall(r"(\w+)\s*=(?!=)", part))


def instances(folder: Path, ports: Sequence[Mapping[str, Any]], config: CduConfig) -> dict[str, Bound]:
    """Return instances of all modules that no other one instantiates, at each interface of a unit that they fit, by a name.

    Raises UserError for a module that fits no interface.
    """
    found, given = list(interfaces(ports, config)), list(modules(folder))
    widths = {port["name"]: port["width"] for port in ports}
    inner = {name for module in given for name in module.instantiated - {module.name}}
    outer = [module for module in given if module.name not in inner]
    if not (outer and found):
        raise UserError(f"--properties {folder} needs a module that no other one instantiates, and a unit with AXI ports")
    bound: dict[str, Bound] = {}
    for module in outer:
        fitting = [interface for interface in found if _fits(module, interface, config)]
        if not fitting:
            raise UserError(_refusal(module, found, config))
        for interface in fitting:
            bound[f"{module.name}_{interface.name}"] = _instance(module, interface, widths, config)
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
            f"The assertions of {name} hold{''.join(f', {reset}' for reset in one.resets)}.",
            device,
            Sby(BOUNDED, DEPTH, partial(_harness, text=one.text), sources=given, initialised=True),
        )
        for name, one in instances(folder, device().ports, config).items()
    ]


def bind(folder: Path, name: str, ports: Sequence[Mapping[str, Any]], config: CduConfig) -> str:
    """Return SystemVerilog that binds all modules to the top module ``name`` in simulations."""
    return "".join(f"bind {name}{one.text}" for one in instances(folder, ports, config).values())


def _harness(device: BoundDevice, text: str) -> str:
    return harness(device, text, resets=False)


def _fits(module: PropertyModule, interface: Interface, config: CduConfig) -> bool:
    connections, name = _connections(module, interface, config).values(), module.name.lower()
    received, sent = (any(word in name for word in words) for words in (_RECEIVED, _SENT))
    known = "" not in connections and not set(connections).isdisjoint(interface.signals.values())
    return known and (received == sent or received == interface.receives)


def _refusal(module: PropertyModule, found: Sequence[Interface], config: CduConfig) -> str:
    """Return a message for a module that fits no interface: the inputs that do not belong to the one that lacks the fewest."""
    others = {one.name: [name for name, to in _connections(module, one, config).items() if not to] for one in found}
    name = min(others, key=lambda name: len(others[name]))
    names = ", ".join(f"{one.name} ({one.protocol})" for one in found)
    why = f"no signal of {name} is left for {', '.join(others[name])}, {_UNDERSTOOD}"
    if not others[name]:
        why = "it has no input of AXI, or a word in its name asks for the other direction"
    return f"module {module.name} of {module.file.name} fits no interface of the unit, {names}: {why}; correct or remove it"


def _signal(name: str, interface: Interface) -> str | None:
    """Return the signal of AXI that an input is called after."""
    known = (*interface.signals, *_ABSENT[interface.protocol])
    return next((one for one in known if re.fullmatch(rf"(\w*_)?{one}", name, re.IGNORECASE)), None)


def _connections(module: PropertyModule, interface: Interface, config: CduConfig) -> dict[str, str]:
    """Return the Verilog that each input of a module is connected to; empty for one that does not belong to the interface."""
    bound: dict[str, str] = {}
    taken: set[str] = set()
    for name in module.inputs:
        signal, reset = _signal(name, interface), _RESET.fullmatch(name)
        if signal in taken:
            bound[name] = ""
        elif signal is not None:
            taken.add(signal)
            bound[name] = interface.signals.get(signal, interface.signals["TKEEP"] if signal == "TSTRB" else "'0")
        elif reset:
            alike = bool(reset["low"]) == (config.reset_active == "low")
            bound[name] = interface.reset if alike else f"!{interface.reset}"
        else:
            bound[name] = interface.clock if _CLOCK.fullmatch(name) else ""
    return bound


def _instance(module: PropertyModule, interface: Interface, widths: Mapping[str, int], config: CduConfig) -> Bound:
    bound = _connections(module, interface, config)
    data = widths[interface.signals["TDATA" if interface.protocol == AXI4_STREAM else "WDATA"]]
    known = {"DATA_WIDTH": data, "DW": data}
    for parameter, port in (("ADDR_WIDTH", "AWADDR"), ("AW", "AWADDR"), ("ID_WIDTH", "AWID"), ("IW", "AWID")):
        if port in interface.signals:
            known[parameter] = widths[interface.signals[port]]
    values = {name: value for name in module.parameters for end, value in known.items() if re.fullmatch(rf"(\w*_)?{end}", name)}
    text = binding.instance(module.name, values, bound, f"{module.name}_{interface.name}")
    resets = tuple(f"{name} = {to}" for name, to in bound.items() if to.lstrip("!") == interface.reset)
    return Bound(text.replace(",\n    .*\n", "\n"), resets)  # outputs stay open, and no name of the unit is bound by chance
