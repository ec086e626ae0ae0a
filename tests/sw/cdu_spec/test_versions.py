"""Versions of package, register map and bitstream agree everywhere, and rise as docs/developer/versions.md requires."""

import base64
import copy
import json
import re
import sys
import sysconfig
import tomllib
from pathlib import Path
from subprocess import run

import actcodec
import pytest
from cdu_spec import bitstream, registers
from cdu_spec.register_documents import c_header
from cdu_tools import distribution

sys.path.insert(0, str(Path(__file__).parent))
import released

ROOT = Path(__file__).parents[3]
RECORD = json.loads(released.RECORD.read_text(encoding="utf-8"))
PAGE = ROOT / "docs" / "developer" / "versions.md"


def breaks(old, new):
    """Yield the differences between register maps (:func:`released.register_map`) that break a driver of the old one."""
    for name, was in old.items():
        now = new.get(name)
        if now is None:
            yield f"{name} is gone"
            continue
        if any(was[key] != now[key] for key in ("offset", "access")) or now["count"] < was["count"]:
            yield f"{name} is another register"
        if not set(was["channels"]) <= set(now["channels"]):
            yield f"{name} is gone from a channel"
        if now["modes"] and not (was["modes"] and set(was["modes"]) <= set(now["modes"])):
            yield f"{name} is gone from some units"
        for part, field in was["fields"].items():
            there = now["fields"].get(part)
            if there is None:
                yield f"{name}.{part} is gone"
            elif there["low"] != field["low"] or there["width"] < field["width"] or there.get("reset") != field.get("reset"):
                yield f"{name}.{part} is another field"
            elif not field["values"].items() <= there["values"].items():
                yield f"{name}.{part} has other values"


def least_version(old, new, version):
    """The least version that a map may have after another one of this version."""
    if any(breaks(old, new)):
        return version[0] + 1, 0
    return (version[0], version[1] + 1) if new != old else version


def test_the_package_has_one_version():
    metadata = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert distribution.version() == metadata["version"], "run: pip install -e ."
    assert re.fullmatch(r"\d+\.\d+\.\d+", metadata["version"])


def test_the_command_says_all_three():
    program = Path(sysconfig.get_path("scripts")) / "cdu"
    said = run([program, "--version"], capture_output=True, text=True, check=True).stdout
    package = distribution.version()
    map_version = f"{registers.MAJOR}.{registers.MINOR}"
    assert said == f"cdu {package}\nregisters {map_version}\nbitstream {bitstream.VERSION}\n"


def test_header_and_pages_have_the_version_of_the_map():
    reset = registers.MAJOR << 16 | registers.MINOR
    assert registers.register("VERSION").reset == reset
    assert f"#define CDU_VERSION_RESET {reset:#010x}u" in c_header().splitlines()
    page = (ROOT / "docs" / "reference" / "registers.md").read_text(encoding="utf-8")
    assert f"0x004 **VERSION** (RO): Version of this register map. Reset: {reset:#x}.\n" in page


def test_the_map_has_the_version_that_its_changes_ask_for():
    recorded = RECORD["registers"]
    version = recorded["major"], recorded["minor"]
    changes = list(breaks(recorded["map"], released.register_map()))
    least = least_version(recorded["map"], released.register_map(), version)
    assert least <= (registers.MAJOR, registers.MINOR), f"{PAGE.name}: the map must be {least}; {changes or 'something is new'}"
    assert version == (registers.MAJOR, registers.MINOR) or least != version, "the map has a new version and nothing new"


@pytest.mark.parametrize(
    ("path", "value", "least"),
    [
        (("global.RESERVE",), {}, (1, 3)),
        (("channel.MODE", "fields", "mode", "values", "other"), 15, (1, 3)),
        (("channel.MODE", "fields", "kind"), {"low": 16, "width": 1, "values": {}, "reset": 0}, (1, 3)),
        (("channel.SEED", "channels"), ["compress", "decompress"], (1, 3)),
        (("channel.SEED", "modes"), [], (1, 3)),
        (("channel.MODE", "offset"), 4, (2, 0)),
        (("channel.ERRORS", "access"), "RW", (2, 0)),
        (("channel.BEATS", "modes"), ["sfpr"], (2, 0)),
        (("channel.BEATS", "channels"), ["compress"], (2, 0)),
        (("channel.SHIFTS0", "count"), 4, (2, 0)),
        (("channel.MODE", "fields", "mode", "values", "sfpr"), 15, (2, 0)),
        (("channel.MODE", "fields", "bank", "low"), 9, (2, 0)),
        (("channel.WATCHDOG", "fields", "value", "reset"), 9, (2, 0)),
        (("channel.MODE", "fields"), {}, (2, 0)),
    ],
    ids=str,
)
def test_what_asks_for_which_version(path, value, least):
    old = RECORD["registers"]["map"]
    new = copy.deepcopy(old)
    inner = new
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    assert least_version(old, new, (1, 2)) == least


def test_a_register_that_goes_asks_for_a_major_version():
    old = RECORD["registers"]["map"]
    assert least_version(old, {name: entry for name, entry in old.items() if name != "channel.SCALE"}, (1, 2)) == (2, 0)


@pytest.mark.parametrize("name", RECORD["bitstream"]["streams"])
def test_streams_of_the_last_release_are_read_as_they_were(name):
    """A stream of a version that this software reads gives the values that it gave."""
    stream = RECORD["bitstream"]["streams"][name]
    packed = base64.b64decode(stream["base64"])
    kind = packed[:3].decode()
    if stream["version"] in released.read_versions()[kind]:
        found = actcodec.from_bytes(packed)
        assert released.checksum(actcodec.decompress(found)) == stream["values"]
        assert found.to_bytes() == packed
    else:
        with pytest.raises(bitstream.BitstreamError, match="version"):
            actcodec.from_bytes(packed)


def test_the_versions_of_the_page_are_the_present_ones():
    text = PAGE.read_text(encoding="utf-8")
    versions = released.present_versions()
    assert f"register map {registers.MAJOR}.{registers.MINOR}" in text
    assert f"streams {versions['CDU']} (`CDU`) and {versions['CDJ']} (`CDJ`)" in text
    assert released.RECORD.relative_to(ROOT).with_suffix(".py").as_posix() in text
