"""Manifest delivered with generated Verilog: ports, bit fields of their payloads, versions, checksums.

``NAME.json`` is enough to write a test bench: every port has a list of bit fields, and :mod:`cdu_spec.port_fields`, which
converts between values and bits, follows that list alone.
"""

from __future__ import annotations

import hashlib
import platform
import re
from collections.abc import Iterator
from typing import Any

from amaranth.hdl import Const, Shape
from amaranth.lib import data, stream, wiring
from cdu_spec.config import CduConfig

from cdu.delivery import verilog
from cdu.delivery.memories import Memories

#: One port, field or manifest, as in the JSON file.
Entry = dict[str, Any]

_STREAM_ROLES = ("payload", "valid", "ready")


def manifest(
    component: wiring.Component[Any],
    name: str,
    config: CduConfig,
    files: dict[str, str],
    memories: Memories | None = None,
) -> Entry:
    """Return the manifest of a component whose Verilog is in NAME.v, under the name that :func:`verilog.top_name` gives it.

    Parameters
    ----------
    component
        The component; its attributes ``latency`` (cycles from the first input to the first output, if nothing waits) and
        ``registers`` (register map) are included if it has them.
    name
        Name of the files.
    config
        Configuration of the component.
    files
        Text of the generated files by name, ``NAME.v`` among them: their checksums become part of the manifest.
    memories
        Memories of the component; default: none.
    """
    return {
        "name": name,
        "top": verilog.top_name(name),
        "config": config.to_dict(),
        "latency": getattr(component, "latency", None),
        "ports": [*_clocks(files[f"{name}.v"], config), *ports(component)],
        "registers": list(getattr(component, "registers", ())),
        "memories": memories.listed() if memories else [],
        "versions": verilog.versions() | {"python": platform.python_version()},
        "sha256": {file: hashlib.sha256(text.encode()).hexdigest() for file, text in files.items()},
    }


def _clocks(text: str, config: CduConfig) -> list[Entry]:
    """Return the clocks and resets in the Verilog: a combinational component has none."""
    return [
        _port(name, "input", Const(0, 1))
        for pair in config.clock_ports.values()
        for name in pair
        if re.search(rf"^  input +wire +{name}\b", text, re.MULTILINE)
    ]


def ports(component: wiring.Component[Any]) -> Iterator[Entry]:
    """Yield all ports of a component's signature, in its order."""
    streams = dict(_streams(component.signature))
    for path, member, value in verilog.ports(component):
        entry = _port(verilog.port_name(path), "input" if member.flow is wiring.In else "output", value)
        owner = verilog.port_name(path[:-1])
        if owner in streams and path[-1] in _STREAM_ROLES:
            entry["stream"] = {"name": owner, "role": path[-1], "direction": streams[owner]}
        yield entry


def _streams(signature: wiring.Signature, path: tuple[str, ...] = ()) -> Iterator[tuple[str, str]]:
    """Yield name and direction (``input``: the component receives) of every stream in a signature."""
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
    """Yield the index paths of all elements of an array member; one empty path if it is no array."""
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
    """Return the layout of a shape with named fields, None for any other shape."""
    try:
        layout = data.Layout.cast(castable)
    except TypeError:
        return None
    return None if isinstance(layout, data.ArrayLayout) else layout


def _fields(castable: Any) -> list[Entry]:
    """Return the fields of a layout, or one nameless field if the shape has no named ones."""
    layout = _structure(castable)
    if layout is None:
        return [_field("", 0, castable)]
    return [_field(str(key), field.offset, field.shape) for key, field in layout]


def _field(name: str, offset: int, castable: Any) -> Entry:
    """Return one field; arrays, also nested ones, become a count of equal, adjacent elements, the first one lowest."""
    count = 1
    while isinstance(castable, data.ArrayLayout):
        count *= castable.length
        castable = castable.elem_shape
    shape = Shape.cast(castable)
    entry: Entry = {"name": name, "offset": offset, "width": shape.width, "signed": shape.signed, "count": count}
    layout = _structure(castable)
    if layout is not None:
        entry["fields"] = _fields(castable)
        if isinstance(layout, data.UnionLayout):
            entry["union"] = True
    return entry
