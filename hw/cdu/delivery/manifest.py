"""The description that travels with generated Verilog: ports, bit fields of their payloads, versions, checksums.

``NAME.json`` is enough to write a test bench: every port has a list of bit fields, :func:`pack` and :func:`unpack` follow
that list and nothing else.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from typing import Any

from amaranth.hdl import Const, Shape
from amaranth.lib import data, stream, wiring
from cdu_spec.config import CduConfig

from cdu.delivery import verilog
from cdu.delivery.memories import Memories

#: One port, field or manifest, as it stands in the JSON file.
Entry = dict[str, Any]

_STREAM_ROLES = ("payload", "valid", "ready")


def manifest(
    component: wiring.Component[Any],
    name: str,
    config: CduConfig,
    files: dict[str, str],
    memories: Memories | None = None,
) -> Entry:
    """The manifest of a component whose Verilog is in NAME.v, under the name that :func:`verilog.top_name` gives it.

    Parameters
    ----------
    component
        The component; its attributes ``latency`` (cycles from the first input to the first output, when nothing waits)
        and ``registers`` (register map) are taken over when it has them.
    name
        Name of the files.
    config
        Configuration that it was made with.
    files
        Text of the generated files by name, ``NAME.v`` among them: their checksums become part of the manifest.
    memories
        Those of the component; default: none.
    """
    return {
        "name": name,
        "top": verilog.top_name(name),
        "config": config.to_dict(),
        "latency": getattr(component, "latency", None),
        "ports": [*_clocks(files[f"{name}.v"], config), *ports(component)],
        "registers": list(getattr(component, "registers", ())),
        "memories": memories.listed() if memories else [],
        "versions": verilog.versions(),
        "sha256": {file: hashlib.sha256(text.encode()).hexdigest() for file, text in files.items()},
    }


def pack(port: Entry, value: Any) -> int:
    """The bits of a port for a value: an integer, or a dictionary or list in the form that :func:`unpack` returns.

    Raises ValueError for integers that do not fit their field and for missing, surplus or unknown fields.
    """
    return _pack(port["fields"], value, port["name"])


def unpack(port: Entry, bits: int) -> Any:
    """The value of a port: integer, list (fields with a count above 1), or dictionary of these by field name."""
    return _unpack(port["fields"], bits)


def _clocks(text: str, config: CduConfig) -> list[Entry]:
    """Clocks and resets, as far as the Verilog has them: a combinational component has none."""
    return [
        _port(name, "input", Const(0, 1))
        for pair in config.clock_ports.values()
        for name in pair
        if re.search(rf"^  input +wire +{name}\b", text, re.MULTILINE)
    ]


def ports(component: wiring.Component[Any]) -> Iterator[Entry]:
    """All ports of a component's signature, in its order."""
    streams = dict(_streams(component.signature))
    for path, member, value in verilog.ports(component):
        entry = _port(verilog.port_name(path), "input" if member.flow is wiring.In else "output", value)
        owner = verilog.port_name(path[:-1])
        if owner in streams and path[-1] in _STREAM_ROLES:
            entry["stream"] = {"name": owner, "role": path[-1], "direction": streams[owner]}
        yield entry


def _streams(signature: wiring.Signature, path: tuple[str, ...] = ()) -> Iterator[tuple[str, str]]:
    """Name and direction (``input``: the component receives) of every stream in a signature."""
    for name, member in signature.members.items():
        if not member.is_signature:
            continue
        for element in _elements(member.dimensions):
            here = (*path, name, *element)
            inner = member.signature
            received = isinstance(inner, wiring.FlippedSignature)
            if isinstance(inner.flip() if received else inner, stream.Signature):
                yield verilog.port_name(here), "input" if received else "output"
            else:
                yield from _streams(inner, here)


def _elements(dimensions: tuple[int, ...]) -> Iterator[tuple[str, ...]]:
    """Index paths of all elements of an array member; one empty path when it is no array."""
    if not dimensions:
        yield ()
        return
    for index in range(dimensions[0]):
        for rest in _elements(dimensions[1:]):
            yield (str(index), *rest)


def _port(name: str, direction: str, value: Any) -> Entry:
    castable = value.shape()
    shape = Shape.cast(castable)
    return {"name": name, "direction": direction, "width": shape.width, "signed": shape.signed, "fields": _fields(castable)}


def _structure(castable: Any) -> data.Layout | None:
    """The layout of a shape with named fields, None for anything else."""
    try:
        layout = data.Layout.cast(castable)
    except TypeError:
        return None
    return None if isinstance(layout, data.ArrayLayout) else layout


def _fields(castable: Any) -> list[Entry]:
    """Fields of a layout, or one nameless field when the shape has no named ones."""
    layout = _structure(castable)
    if layout is None:
        return [_field("", 0, castable)]
    return [_field(str(key), field.offset, field.shape) for key, field in layout]


def _field(name: str, offset: int, castable: Any) -> Entry:
    """One field; arrays, also arrays of arrays, become a count of equal, adjacent elements, the first one lowest."""
    count = 1
    while isinstance(castable, data.ArrayLayout):
        count *= castable.length
        castable = castable.elem_shape
    shape = Shape.cast(castable)
    entry: Entry = {"name": name, "offset": offset, "width": shape.width, "signed": shape.signed, "count": count}
    if _structure(castable) is not None:
        entry["fields"] = _fields(castable)
    return entry


def _pack(fields: list[Entry], value: Any, where: str) -> int:
    if len(fields) == 1 and not fields[0]["name"]:
        return _pack_field(fields[0], value, where)
    names = [field["name"] for field in fields]
    if not isinstance(value, dict) or set(value) != set(names):
        raise ValueError(f"{where} takes a dictionary with exactly the fields {', '.join(names)}, not {value!r}")
    return sum(_pack_field(field, value[field["name"]], f"{where}.{field['name']}") for field in fields)


def _pack_field(field: Entry, value: Any, where: str) -> int:
    elements = [value] if field["count"] == 1 else list(value)
    if len(elements) != field["count"]:
        raise ValueError(f"{where} takes {field['count']} elements, not {len(elements)}")
    bits, width = 0, field["width"]
    for index, element in enumerate(elements):
        if "fields" in field:
            word = _pack(field["fields"], element, where)
        else:
            word = int(element)
            low, high = (-(1 << width >> 1), (1 << width >> 1) - 1) if field["signed"] else (0, (1 << width) - 1)
            if not low <= word <= high:
                raise ValueError(f"{where} = {word} does not fit {width} bits: use {low} to {high}")
        bits |= (word & ((1 << width) - 1)) << (width * index)
    return bits << int(field["offset"])


def _unpack(fields: list[Entry], bits: int) -> Any:
    if len(fields) == 1 and not fields[0]["name"]:
        return _unpack_field(fields[0], bits)
    return {field["name"]: _unpack_field(field, bits) for field in fields}


def _unpack_field(field: Entry, bits: int) -> Any:
    width, elements = field["width"], []
    for index in range(field["count"]):
        word = bits >> (field["offset"] + index * width) & ((1 << width) - 1)
        if "fields" in field:
            elements.append(_unpack(field["fields"], word))
        else:
            elements.append(word - (1 << width) if field["signed"] and word >> (width - 1) else word)
    return elements[0] if field["count"] == 1 else elements
