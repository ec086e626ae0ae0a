"""Instances of the modules of ``harness/*.sv``, which bind their checks to the signals of a device."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from cdu_verif.formal.device import Device

_FOLDER = Path(__file__).with_name("harness")
#: Greatest number that a literal without a width holds.
_LITERAL_MAX = (1 << 31) - 1


def sources() -> tuple[Path, ...]:
    """Return the SystemVerilog files of all harness modules; each defines the module with its name."""
    return tuple(sorted(_FOLDER.glob("*.sv")))


def instance(module: str, parameters: Mapping[str, int], ports: Mapping[str, str], name: str = "") -> str:
    """Return an instance of a harness module, called as the module or ``name``.

    Ports that ``ports`` does not bind to an expression are bound to the wires of their names.
    """
    values = ", ".join(f".{key}({_literal(value)})" for key, value in parameters.items())
    bound = "".join(f"    .{port}({expression}),\n" for port, expression in ports.items())
    return f"  {module} {f'#({values}) ' if values else ''}{name or module} (\n{bound}    .*\n  );\n"


def fields(device: Device, port: str, *paths: str) -> dict[str, str]:
    """Return ports of a harness module with fields of a payload: ``tag.last`` of ``i__payload`` is bound to ``i_last``.

    Raises KeyError for fields that do not exist.
    """
    stream = port.removesuffix("__payload")
    return {f"{stream}_{path.rpartition('.')[2]}": device.field(port, *path.split(".")) for path in paths}


def lane_fields(device: Device, stream: str, lanes: int, *paths: str) -> dict[str, str]:
    """Return :func:`fields` for N streams side by side, with valid and ready: lane 0 is the lowest element of each port."""
    lane_ports = [fields(device, f"{stream}__{lane}__payload", *paths) for lane in range(lanes)]
    # All lanes have the fields in the same order.
    names = [f"{stream}_{path.rpartition('.')[2]}" for path in paths]
    arrays = [concat(elements) for elements in zip(*(ports.values() for ports in lane_ports), strict=True)]
    handshake = {
        f"{stream}_{role}": concat([f"{stream}__{lane}__{role}" for lane in range(lanes)]) for role in ("valid", "ready")
    }
    return dict(zip(names, arrays, strict=True)) | handshake


def concat(elements: Sequence[str]) -> str:
    """Return the Verilog expression of an array; the first element is the lowest one."""
    return f"{{{', '.join(reversed(elements))}}}"


def mask(numbers: Iterable[int]) -> int:
    """Return a number with the bits ``numbers`` set."""
    return sum(1 << number for number in numbers)


def packed(values: Iterable[int], bits: int) -> int:
    """Return a packed array of numbers of ``bits`` bits as one number, the first one lowest."""
    return sum(value << bits * place for place, value in enumerate(values))


def _literal(value: int) -> str:
    return f"{value:d}" if value <= _LITERAL_MAX else f"{value.bit_length()}'h{value:x}"
