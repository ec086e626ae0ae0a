"""Convert between the bits of a port and the values of its fields, listed as in the manifest of generated Verilog."""

from __future__ import annotations

from typing import Any

#: A port or one of its fields, as the manifest has it.
Entry = dict[str, Any]


def pack(port: Entry, value: Any) -> int:
    """Return the bits of a port for a value: an integer, or a dictionary or list in the form that :func:`unpack` returns.

    A union takes one of its fields. Raises ValueError for integers that do not fit their field and for missing, surplus or
    unknown fields.
    """
    return _pack(port["fields"], value, port["name"])


def unpack(port: Entry, bits: int) -> Any:
    """Return the value of a port: integer, list (fields with a count above 1), or dictionary of these by field name.

    Of a union the dictionary has the widest field, which holds all its bits.
    """
    return _unpack(port["fields"], bits)


def _pack(fields: list[Entry], value: Any, where: str) -> int:
    if len(fields) == 1 and not fields[0]["name"]:
        return _pack_field(fields[0], value, where)
    names = [field["name"] for field in fields]
    if not isinstance(value, dict) or set(value) != set(names):
        raise ValueError(f"{where} takes a dictionary with exactly the fields {', '.join(names)}, not {value!r}")
    return sum(_pack_field(field, value[field["name"]], f"{where}.{field['name']}") for field in fields)


def _taken(field: Entry, value: Any) -> list[Entry]:
    """Return the fields that a value of a field has: all, or of a union the one that the value names."""
    inner: list[Entry] = field["fields"]
    if not field.get("union"):
        return inner
    return [entry for entry in inner if isinstance(value, dict) and entry["name"] in value][:1] or inner


def _pack_field(field: Entry, value: Any, where: str) -> int:
    elements = [value] if field["count"] == 1 else list(value)
    if len(elements) != field["count"]:
        raise ValueError(f"{where} takes {field['count']} elements, not {len(elements)}")
    bits, width = 0, field["width"]
    for index, element in enumerate(elements):
        if "fields" in field:
            word = _pack(_taken(field, element), element, where)
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
            widest = max(field["fields"], key=lambda entry: entry["width"] * entry["count"])
            elements.append(_unpack([widest] if field.get("union") else field["fields"], word))
        else:
            elements.append(word - (1 << width) if field["signed"] and word >> (width - 1) else word)
    return elements[0] if field["count"] == 1 else elements
