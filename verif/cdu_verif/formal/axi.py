"""The channels of AXI ports, found by the names of their signals."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

#: Payload of the channels of AXI4-Stream, AXI4-Lite and AXI4, by the letters before ``valid`` and ``ready``; each has some.
_REQUEST = ("addr", "prot", "id", "len", "size", "burst", "cache", "qos", "user")
_PAYLOADS = {
    "t": ("tdata", "tkeep", "tlast"),
    "aw": tuple(f"aw{name}" for name in _REQUEST),
    "w": ("wdata", "wstrb", "wlast"),
    "b": ("bresp", "bid"),
    "ar": tuple(f"ar{name}" for name in _REQUEST),
    "r": ("rdata", "rresp", "rid", "rlast"),
}


def channels(ports: Mapping[str, tuple[bool, int]]) -> Iterator[tuple[str, bool, int, dict[str, str]]]:
    """Name, whether the device receives, bits of the payload, and expressions by role of every channel.

    ``ports`` tells by name whether a port is an input, and its width.
    """
    for valid, (received, _) in ports.items():
        prefix, _, signal = valid.rpartition("_")
        letters = signal.removesuffix("valid")
        ready, names = f"{prefix}_{letters}ready", [f"{prefix}_{name}" for name in _PAYLOADS.get(letters, ())]
        payload = [name for name in names if name in ports]
        if not prefix or letters == signal or ready not in ports or not payload:
            continue
        width = sum(ports[name][1] for name in payload)
        name = prefix if letters == "t" else f"{prefix}_{letters}"
        yield name, received, width, {"payload": f"{{{', '.join(payload)}}}", "valid": valid, "ready": ready}
