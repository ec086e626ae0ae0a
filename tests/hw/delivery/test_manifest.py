"""The manifest against the Verilog beside it, and against Amaranth's own layouts."""

import hashlib
import json
import platform
import re

import pytest
from amaranth.hdl import Module, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In
from cdu.delivery import generator, manifest, verilog
from cdu.delivery.blocks import BLOCKS
from cdu_spec import CduConfig, port_fields
from cdu_spec.config_rules import ConfigError
from hypothesis import given, settings
from hypothesis import strategies as st

VALUE = {
    "values": [1, -2, 3, -128, 127, 0, -1, 5],
    "grid": [0, 15, 7, 1, 2, 3],
    "pixels": [{"level": -16, "kind": 7}, {"level": 15, "kind": 0}],
    "first": {"level": -1, "kind": 5},
    "last": 1,
}


def described(component):
    text = verilog.convert(component, "adder")
    return text, manifest.manifest(component, "adder", CduConfig(), {"adder.v": text})


def ports_of(text, name):
    """(direction, signed, width) of the ports of a module, read from its Verilog."""
    body = re.search(rf"module {name} \(.*?\);", text, re.DOTALL)[0]
    found = re.findall(r"^  (input|output) +(?:wire|reg) +(signed )?(?:\[(\d+):0\] )?(\w+)", body, re.MULTILINE)
    return {name: (direction, bool(sign), int(high or 0) + 1) for direction, sign, high, name in found}


def test_ports_are_those_of_the_verilog(small):
    text, content = described(small)
    listed = {port["name"]: (port["direction"], port["signed"], port["width"]) for port in content["ports"]}
    assert listed == ports_of(text, "adder")
    assert {"clk", "rst", "i__payload", "marks__1__valid", "lookup"} <= set(listed)
    assert "marks__0__ready" not in listed  # always ready


@pytest.mark.parametrize("block", [None, *BLOCKS])
def test_ports_of_all_blocks_are_those_of_the_verilog(generated, block):
    made = generated[block]
    listed = {port["name"]: (port["direction"], port["signed"], port["width"]) for port in made.manifest["ports"]}
    assert listed == ports_of(made.verilog, made.top)


def test_streams(small):
    _, content = described(small)
    streams = {port["name"]: port.get("stream") for port in content["ports"]}
    assert streams["i__ready"] == {"name": "i", "role": "ready", "direction": "input"}
    assert streams["o__payload"] == {"name": "o", "role": "payload", "direction": "output"}
    assert streams["marks__1__valid"] == {"name": "marks__1", "role": "valid", "direction": "input"}
    assert streams["busy"] is None


def test_packing_is_that_of_amaranth(small):
    _, content = described(small)
    (port,) = [port for port in content["ports"] if port["name"] == "i__payload"]
    grid = [VALUE["grid"][:2], VALUE["grid"][2:4], VALUE["grid"][4:]]
    expected = small.i.payload.shape().const({**VALUE, "grid": grid}).as_bits()
    assert port_fields.pack(port, VALUE) == expected
    assert port_fields.unpack(port, expected) == VALUE


@given(bits=st.integers(0, 2**300 - 1))
@settings(max_examples=50)
def test_packing_inverts_unpacking(bits):
    port = {"name": "p", "fields": [_entry("a", 0, 5, True, 7), _entry("b", 35, 1, True, 1), _entry("c", 36, 44, False, 6)]}
    bits &= (1 << 300) - 1
    assert port_fields.pack(port, port_fields.unpack(port, bits)) == bits


class _Choice(wiring.Component):
    """A component with a union of two layouts at its input."""

    def __init__(self):
        narrow, wide = data.StructLayout({"c": 1}), data.StructLayout({"a": 2, "b": signed(3)})
        super().__init__({"i": In(data.StructLayout({"first": 1, "how": data.UnionLayout({"narrow": narrow, "wide": wide})}))})

    def elaborate(self, platform):
        return Module()


def test_a_union_takes_one_field_and_gives_the_widest():
    _, content = described(_Choice())
    (port,) = [port for port in content["ports"] if port["name"] == "i"]
    assert port_fields.pack(port, {"first": 1, "how": {"narrow": {"c": 1}}}) == 0b11
    bits = port_fields.pack(port, {"first": 0, "how": {"wide": {"a": 2, "b": -1}}})
    assert bits == 0b111100
    assert port_fields.unpack(port, bits) == {"first": 0, "how": {"wide": {"a": 2, "b": -1}}}
    for wrong in ({}, {"other": 1}, {"narrow": {"c": 1}, "wide": {"a": 2, "b": -1}}):
        with pytest.raises(ValueError, match="exactly the fields"):
            port_fields.pack(port, {"first": 0, "how": wrong})


def _entry(name, offset, width, signed, count):
    return {"name": name, "offset": offset, "width": width, "signed": signed, "count": count}


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({**VALUE, "last": 2}, "does not fit 1 bits: use 0 to 1"),
        ({**VALUE, "values": [128] * 8}, "use -128 to 127"),
        ({**VALUE, "values": [0] * 7}, "takes 8 elements, not 7"),
        ({"values": [0] * 8}, "exactly the fields"),
        (3, "exactly the fields"),
    ],
)
def test_values_that_do_not_fit_are_refused(small, value, message):
    _, content = described(small)
    (port,) = [port for port in content["ports"] if port["name"] == "i__payload"]
    with pytest.raises(ValueError, match=message):
        port_fields.pack(port, value)


def test_files_carry_versions_checksum_and_description(tmp_path):
    made = generator.generate(CduConfig(), "shift_quantizer")
    paths = made.write(tmp_path)
    names = {path.name: path for path in paths}
    endings = (".core", ".json", ".sdc", ".v", ".vlt", "_equiv.ys", "_librelane.yaml", "_synth.tcl")
    assert sorted(names) == [f"shift_quantizer{ending}" for ending in endings]
    content = json.loads(names["shift_quantizer.json"].read_text())
    assert content["sha256"] == {"shift_quantizer.v": hashlib.sha256(names["shift_quantizer.v"].read_bytes()).hexdigest()}
    assert content["config"] == CduConfig().to_dict()
    assert content["versions"] == verilog.versions() | {"python": platform.python_version()}
    assert content["registers"] == []
    assert (content["name"], content["top"]) == ("shift_quantizer", "cdu_shift_quantizer")
    core = names["shift_quantizer.core"].read_text()
    assert core.startswith("CAPI=2:\n")
    assert "shift_quantizer.v" in core
    assert names["shift_quantizer.vlt"].read_text() == made.waivers


def test_unknown_block_is_refused():
    with pytest.raises(ConfigError, match=r"unknown block 'dtc'.*dct"):
        generator.generate(CduConfig(), "dtc")
