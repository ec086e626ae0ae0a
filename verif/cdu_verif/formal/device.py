"""Device under proof, and the Verilog module that surrounds it with free inputs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from amaranth.lib.wiring import Component
from cdu.delivery import generator
from cdu.delivery.manifest import manifest
from cdu.delivery.verilog import convert, top_name
from cdu_spec.config import CduConfig

from cdu_verif.formal import axi

#: Name of the module that holds the device and its checkers.
HARNESS = "harness"


@dataclass(frozen=True)
class Stream:
    """One stream port of a device, or one channel of an AXI port.

    Parameters
    ----------
    name
        Name without role.
    received
        The device is the receiver.
    width
        Bits of the payload.
    signals
        Verilog expressions for the roles ``payload``, ``valid`` and ``ready``, as far as the stream has them.
    """

    name: str
    received: bool
    width: int
    signals: Mapping[str, str]

    def signal(self, role: str) -> str:
        """Return the Verilog expression for a role; a stream that is always valid or always ready has no port for that."""
        return self.signals.get(role, "1'b1")


@dataclass(frozen=True)
class Probe:
    """A signal inside a device that its harness can see, under the name :attr:`wire`.

    ``path`` is its name in the flattened device (``lane0.held``), ``width`` its bits.
    """

    path: str
    width: int

    @property
    def wire(self) -> str:
        """Return the name in the harness."""
        return f"inner_{self.path.replace('.', '__')}"


@dataclass(frozen=True)
class Device:
    """A delivered Verilog file with its ports.

    Parameters
    ----------
    name
        Name of the Verilog top.
    verilog
        The text that ``cdu generate`` writes, with every name.
    ports
        ``ports`` of the manifest.
    probes
        Further signals that the harness observes, for helper invariants of an induction.
    """

    name: str
    verilog: str
    ports: tuple[Mapping[str, Any], ...]
    probes: tuple[Probe, ...] = ()

    def probed(self, widths: Mapping[str, int]) -> Device:
        """Return the device with probes, whose widths are given by path."""
        return replace(self, probes=tuple(Probe(path, width) for path, width in widths.items()))

    @property
    def streams(self) -> tuple[Stream, ...]:
        """Return all stream ports, as in the manifest, and the channels of AXI ports, by their names."""
        found: dict[str, dict[str, Mapping[str, Any]]] = {}
        for port in self.ports:
            if "stream" in port:
                found.setdefault(port["stream"]["name"], {})[port["stream"]["role"]] = port
        own = [
            Stream(
                name,
                next(iter(ports.values()))["stream"]["direction"] == "input",
                ports["payload"]["width"] if "payload" in ports else 0,
                {role: port["name"] for role, port in ports.items()},
            )
            for name, ports in found.items()
        ]
        channels = axi.channels({port["name"]: (port["direction"] == "input", port["width"]) for port in self.ports})
        return (*own, *(Stream(*channel) for channel in channels))

    def field(self, port: str, *path: str) -> str:
        """Return the Verilog expression for a field of a port. Raises KeyError if there is none."""
        offset, width = self._place(port, path)
        return f"{port}[{offset} +: {width}]"

    def offset(self, port: str, *path: str) -> int:
        """Return the first bit of a field of a port. Raises KeyError if there is none."""
        return self._place(port, path)[0]

    def width(self, port: str, *path: str) -> int:
        """Return the bits of a field of a port. Raises KeyError if there is none."""
        return self._place(port, path)[1]

    def _place(self, port: str, path: tuple[str, ...]) -> tuple[int, int]:
        """Return the first bit and the width of a field."""
        fields = next(entry["fields"] for entry in self.ports if entry["name"] == port)
        offset, width = 0, 0
        for name in path:
            found = {entry["name"]: entry for entry in fields}[name]
            offset, width, fields = offset + found["offset"], found["width"] * found["count"], found.get("fields", [])
        return offset, width


def of_block(block: str, config: CduConfig) -> Device:
    """Return a block by name, as ``cdu generate --block`` delivers it, with unused names, which probes may need."""
    made = generator.kept(config, block, every_name=True)
    return Device(made.top, made.verilog, tuple(made.manifest["ports"]))


def of_component(component: Component[Any], name: str, config: CduConfig) -> Device:
    """Return a component that is part of a block, written by the same generator."""
    top = top_name(name)
    text = convert(component, top, config, every_name=True)
    return Device(top, text, tuple(manifest(component, name, config, {f"{name}.v": text})["ports"]))


def harness(device: Device, body: str = "", free: Mapping[str, int] | None = None, resets: bool = True) -> str:
    """Return the Verilog text of the harness.

    Every input of the device is free in every cycle, every port a wire of its own name. All registers of the device begin with
    arbitrary content; ``rst`` is high in the first cycle and, with ``resets``, possibly in later ones.

    Parameters
    ----------
    device
        Device to surround.
    body
        Verilog of the checkers and assumptions.
    free
        Masks of the free bits, for inputs whose other bits are 0.
    resets
        Whether a reset may come at any time.
    """
    lines = [f"module {HARNESS} (input clk);", "  reg started = 0;", "  always @(posedge clk) started <= 1;"]
    lines += ["  (* anyseq *) wire reset;", "  wire rst = !started | reset;"] if resets else ["  wire rst = !started;"]
    for port in device.ports:
        name, width = port["name"], port["width"]
        if name in ("clk", "rst") or not width:
            continue
        if free and name in free:
            lines.append(f"  (* anyseq *) wire [{width - 1}:0] any_{name};")
            lines.append(f"  wire [{width - 1}:0] {name} = any_{name} & {width}'h{free[name]:x};")
        else:
            lines.append(f"  {'(* anyseq *) ' * (port['direction'] == 'input')}wire [{width - 1}:0] {name};")
    lines += [f"  wire [{probe.width - 1}:0] {probe.wire};" for probe in device.probes]
    connections = ", ".join(
        [f".{port['name']}({port['name']})" for port in device.ports if port["width"]]
        + [f".\\{probe.path} ({probe.wire})" for probe in device.probes]
    )
    lines += [f"  {device.name} dut ({connections});", body.rstrip(), "endmodule", ""]
    return "\n".join(lines)
