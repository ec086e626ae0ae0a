"""Facts of the last release on which drivers and files depend: register map and streams, as plain data in released.json.

    python tests/sw/cdu_spec/released.py

rewrites the data, as part of a release (docs/developer/versions.md).
"""

import base64
import hashlib
import json
from pathlib import Path

import actcodec
import torch
from actcodec.golden import jpeg_base_stream
from cdu_spec import bitstream, registers
from cdu_spec.channel_block import CHANNEL
from cdu_spec.register_types import Access
from cdu_spec.registers import GLOBAL

RECORD = Path(__file__).with_name("released.json")
#: Streams of one sample of two channels, by codec.
CODECS = (
    *("sfpr", "sfpr+zvc", "jpeg-act", "jpeg-gmc", "brc", "bypass", "division", "actnn", "blpa", "autoquant", "autoquantz"),
    "jpeg-base",
)
SHAPE = (1, 2, 8, 16)


def register_map():
    """Return every register of both tables as a driver sees it."""
    return {
        f"{block}.{entry.name}": {
            "offset": entry.offset,
            "count": entry.count,
            "access": entry.access.value,
            "channels": [channel.value for channel in entry.channels],
            "modes": [mode.label for mode in entry.modes],
            "coder": "" if entry.coder is None else entry.coder.label,
            **({"options": list(entry.options)} if entry.options else {}),
            "fields": {part.name: _field(part, entry.access) for part in entry.fields},
        }
        for block, table in (("global", GLOBAL), ("channel", CHANNEL))
        for entry in table
    }


def _field(part, access):
    # Read-only fields tell the unit's sizes and versions, which may differ.
    reset = {"reset": part.reset} if access in (Access.RW, Access.W1C) else {}
    return {"low": part.low, "width": part.width, "values": dict(part.values)} | reset


def values():
    """A tensor that every codec can hold."""
    places = torch.arange(torch.Size(SHAPE).numel())
    return (((37 * places) % 101 - 50).float() / 16).reshape(SHAPE)


def checksum(tensor):
    """SHA-256 of a float32 tensor's bytes."""
    return hashlib.sha256(tensor.contiguous().numpy().tobytes()).hexdigest()


def stream(name):
    """Return a codec's stream of the tensor, and the checksum of its decoded values."""
    packed = actcodec.codec(name).compress(values()).to_bytes()
    return {
        "version": packed[len(bitstream.MAGIC)],
        "base64": base64.b64encode(packed).decode(),
        "values": checksum(actcodec.decompress(actcodec.from_bytes(packed))),
    }


def present_versions():
    """Version of the streams of each magic."""
    return {"CDU": bitstream.VERSION, "CDJ": jpeg_base_stream.VERSION}


def read_versions():
    """Versions of the streams of each magic that this software reads."""
    return {"CDU": {bitstream.FIRST_VERSION, bitstream.VERSION}, "CDJ": {jpeg_base_stream.VERSION}}


def present():
    """The record of the present state."""
    return {
        "registers": {"major": registers.MAJOR, "minor": registers.MINOR, "map": register_map()},
        "bitstream": {
            "versions": present_versions(),
            "streams": {name: stream(name) for name in CODECS},
        },
    }


def _text(content, depth=3, margin=""):
    """JSON with one line per register and stream."""
    if depth == 0 or not isinstance(content, dict):
        return json.dumps(content)
    inner = margin + "  "
    lines = [f"{inner}{json.dumps(key)}: {_text(part, depth - 1, inner)}" for key, part in content.items()]
    return "{\n" + ",\n".join(lines) + f"\n{margin}}}"


if __name__ == "__main__":
    torch.set_num_threads(1)
    RECORD.write_text(_text(present()) + "\n", encoding="utf-8")
