"""Monitors, patterns, packing and reports, without a simulator."""

import json
import xml.etree.ElementTree as ET
from itertools import islice
from random import Random

import numpy as np
import pytest
import torch
from actcodec.backends.job import decompression_job
from actcodec.codecs import codec
from cdu_spec import port_fields
from cdu_spec.config import CONFIGS, CduConfig
from cdu_spec.config_rules import ConfigError
from cdu_spec.modes import Mode
from cdu_verif.cases.block_streams import payload_words
from cdu_verif.cases.payload import populations
from cdu_verif.content.payloads import descriptor, float_beats, float_bytes, same_bits
from cdu_verif.content.tensors import exchange
from cdu_verif.regression import plan, results
from cdu_verif.simulation.handshake import HandshakeError, HandshakeMonitor
from cdu_verif.simulation.patterns import PATTERNS
from cdu_verif.simulation.ports import pack_rows, unpack_rows
from cdu_verif.stimulus import ieee1180

WORD = {
    "name": "i__payload",
    "width": 134,
    "fields": [
        {"name": "data", "offset": 0, "width": 128, "signed": False, "count": 1},
        {"name": "count", "offset": 128, "width": 5, "signed": False, "count": 1},
        {"name": "last", "offset": 133, "width": 1, "signed": False, "count": 1},
    ],
}
LANES = {"name": "o__payload", "width": 96, "fields": [{"name": "", "offset": 0, "width": 12, "signed": True, "count": 8}]}


def test_monitor_accepts_what_holds():
    monitor = HandshakeMonitor("o")
    for valid, ready, payload in [(0, 1, 0), (1, 0, 7), (1, 0, 7), (1, 1, 7), (1, 1, 8), (0, 0, 0), (1, 0, 9)]:
        monitor.check(bool(valid), bool(ready), payload)
    monitor.forget()
    monitor.check(False, True, 0)


def test_monitor_finds_a_withdrawn_valid():
    monitor = HandshakeMonitor("o")
    monitor.check(True, False, 7)
    with pytest.raises(HandshakeError, match="valid fell"):
        monitor.check(False, True, 7)


def test_monitor_finds_a_changed_payload():
    monitor = HandshakeMonitor("o")
    monitor.check(True, False, 7)
    with pytest.raises(HandshakeError, match="payload changed"):
        monitor.check(True, True, 6)


@pytest.mark.parametrize("name", PATTERNS)
def test_patterns_depend_on_the_seed_only(name):
    def first(seed):
        return [list(islice(pattern, 500)) for pattern in PATTERNS[name](Random(seed))]

    assert first(3) == first(3)
    for pattern in first(3):
        assert any(pattern)
    if name != "full_rate":
        assert not all(all(pattern) for pattern in first(3))


def test_rows_pack_as_the_manifest_packs():
    values = np.random.default_rng(1).integers(-2048, 2048, (50, 8))
    packed = pack_rows(LANES, {"": values})
    assert packed == [port_fields.pack(LANES, row.tolist()) for row in values]
    assert np.array_equal(unpack_rows(LANES, packed)[""], values)


def test_wide_fields_are_bytes():
    data = np.arange(32, dtype=np.uint8).reshape(2, 16)
    packed = pack_rows(WORD, {"data": data, "count": np.array([16, 3]), "last": np.array([0, 1])})
    expected = {"data": int.from_bytes(data[1].tobytes(), "little"), "count": 3, "last": 1}
    assert port_fields.unpack(WORD, packed[1]) == expected
    assert np.array_equal(unpack_rows(WORD, packed)["data"], data)


def test_packing_refuses_what_does_not_fit():
    with pytest.raises(ValueError, match="-2048 to 2047"):
        pack_rows(LANES, {"": np.full((1, 8), 2048)})
    with pytest.raises(ValueError, match="has the fields"):
        pack_rows(LANES, {"values": np.zeros((1, 8))})


@pytest.mark.parametrize("length", [1, 15, 16, 17, 32])
def test_payload_words_hold_the_payload(length):
    payload = bytes(range(1, length + 1))
    words = [port_fields.unpack(WORD, word) for word in payload_words({"i__payload": WORD}, "i", payload)]
    assert b"".join(word["data"].to_bytes(16, "little")[: word["count"]] for word in words) == payload
    assert [word["last"] for word in words] == [0] * (len(words) - 1) + [1]


def test_populations_are_complete():
    assert [int(count) for count in (populations(Random(1)) != 0).sum(1)] == list(range(65))


@pytest.mark.parametrize("mode", Mode)
def test_exchange_is_what_the_codec_makes(mode):
    config = CduConfig()
    item = exchange(config, Random(5), (2, 3, 8, 16), mode, "normal")
    assert descriptor(item.compression)["beats"] == len(item.beats) == len(item.restored)
    assert len(float_bytes(item.beats)) == len(item.beats) * config.beat_bits // 8
    assert same_bits(float_beats(float_bytes(item.beats), item.compression), item.beats)


def test_descriptor_has_the_fields_of_the_port():
    from cdu.delivery import generator

    packed = codec("jpeg-act").compress(torch.randn(1, 2, 8, 8))
    job = decompression_job(packed.header, packed.shifts, packed.reciprocals)
    ports = {port["name"]: port for port in generator.kept(CduConfig(), "decompressor").manifest["ports"]}
    port = ports["job__payload"]
    written, given = port_fields.pack(port, descriptor(job)), descriptor(job)
    read = port_fields.unpack(port, written)
    # A union is read as its widest member, which has the same bits.
    assert {name: value for name, value in read.items() if name != "how"} == {
        name: value for name, value in given.items() if name != "how"
    }
    assert port_fields.pack(port, read) == written


def _write(folder, text, records=()):
    (folder / "cocotb.xml").write_text(text)
    (folder / "records.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    return results.read("dct", folder / "cocotb.xml", folder / "records.jsonl", 7, "cdu verify --block dct", "crashed")


def test_results_join_cocotb_and_records(tmp_path):
    xml = (
        '<testsuites><testsuite><testcase name="a" time="1.5"/><testcase name="b"><failure message="wrong\x26#10;more"/>'
        '</testcase><testcase name="c"><skipped/></testcase><testcase name="silent"/></testsuite></testsuites>'
    )
    found = _write(tmp_path, xml, [{"test": "a", "cases": 3, "cycles": 90, "figures": {"rate": "8"}}])
    assert [result.status for result in found] == [results.PASSED, results.FAILED, results.SKIPPED, results.FAILED]
    assert (found[0].cases, found[0].cycles) == (3, 90)
    written = results.report(found, "cdu verify", {})
    written.write(tmp_path)
    content = written.content
    assert written.lines == ["4 tests, 1 passed, 2 failed"]
    assert [line.splitlines()[0] for line in written.failed] == ["failed: dct b", "failed: dct silent"]
    assert (content["tests"], content["failures"], content["skipped"]) == (4, 2, 1)
    top = ET.parse(tmp_path / "results.xml").getroot()
    assert (top.get("tests"), top.get("failures"), top.get("skipped")) == ("4", "2", "1")
    assert len(list(top.iter("testcase"))) == 4
    report = (tmp_path / "report.md").read_text()
    assert "cdu verify --block dct --test 'b'" in report
    assert "| rate | 8 |" in report
    assert json.loads((tmp_path / "report.json").read_text())["seeds"] == {"dct": 7}


@pytest.mark.parametrize("text", ["", "<testsuites>", "<testsuites/>"])
def test_a_simulation_without_results_is_a_failure(tmp_path, text):
    (found,) = _write(tmp_path, text)
    assert found.status == results.FAILED
    assert "crashed" in found.message


def test_plan_varies_what_is_not_fixed():
    labels = [run.label for run in plan.runs(CduConfig(), ["inverse_sfpr"], full=False)]
    every = ",".join(CONFIGS["universal"].modes)
    assert labels == [
        "inverse_sfpr",
        f"inverse_sfpr[value_format=bf16,modes={every}]",
        f"inverse_sfpr[value_format=fp16,multiplier_stages=1,modes={every}]",
    ]
    pinned = plan.runs(CduConfig(value_format="bf16"), ["inverse_sfpr"], full=False, pinned=["value_format"])
    assert [run.config.value_format for run in pinned] == [
        "bf16"
    ] * 3  # as it is; with all modes; and these with a stage besides
    assert len(plan.runs(CduConfig(), [], full=True)) > len(plan.runs(CduConfig(), [], full=False)) >= 14


def test_plan_refuses_what_it_does_not_know():
    with pytest.raises(ConfigError, match="unknown block 'dtc'"):
        plan.runs(CduConfig(), ["dtc"], full=False)
    with pytest.raises(ConfigError, match="training needs a unit with"):
        plan.training_run(CduConfig(modes=("brc",)))


def test_the_reference_passes_and_an_offset_fails_ieee_1180():
    _, reference = next(ieee1180.runs()).stimulus(4)
    assert ieee1180.AccuracyErrors.of(reference, reference).passed
    assert not ieee1180.AccuracyErrors.of(reference + 1, reference).passed
