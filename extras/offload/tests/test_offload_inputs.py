"""Ratios from training results, rates from verification reports, clocks from synthesis reports, and the platform's anchor."""

import json

import pytest
from cdu_driver import job_cycles
from cdu_offload import network as networks
from cdu_offload import platform, ratios, unit
from cdu_offload.network import OffloadActivation
from cdu_spec import CduConfig
from cdu_spec.modes import Mode
from cdu_spec.register_types import Channel
from cdu_tools.errors import UserError


def row(op, shape, codec, ratio):
    return {"name": "m", "op": op, "shape": list(shape), "codec": codec, "ratio": ratio, "relative_error": 0.0}


RESULTS = {
    "model": "resnet",
    "dataset": "digits",
    "runs": [
        {"codec": "none", "tensors": [row("conv", (2, 4, 8, 8), "exact", 1.0)]},
        {
            "codec": "jpeg-act",
            "tensors": [
                row("conv", (2, 4, 8, 8), "jpeg-act", 8.0),
                row("conv", (2, 4, 16, 16), "jpeg-act", 16.0),
                row("sum", (2, 4, 8, 8), "jpeg-act", 4.0),
                row("conv", (2, 4, 4, 4), "sfpr", 4.0),
                row("relu", (2, 4, 8, 8), "brc", 32.0),
                row("relu", (2, 4, 8, 8), "sfpr+zvc", 6.0),
                row("pool", (2, 4, 8, 8), "sfpr+zvc", 5.0),
                row("relu", (2, 4, 8, 8), "shape", 100.0),
                row("softmax", (2, 10), "exact", 1.0),
            ],
        },
        {"codec": "cdma", "tensors": [row("relu", (2, 4, 8, 8), "cdma", 2.0), row("conv", (2, 4, 8, 8), "exact", 1.0)]},
    ],
}


@pytest.fixture
def table():
    return ratios.measured(RESULTS)["resnet"]


def test_bytes_are_added_up_not_ratios(table):
    """512 values at 8 and 2048 at 16: 2560 / (64 + 128)."""
    found = table["jpeg-act"].ratio(OffloadActivation("conv", "dense", (1, 1, 8, 8)))
    assert found == pytest.approx(2560 / 192)


@pytest.mark.parametrize(
    ("codec", "producer", "kind", "expected"),
    [
        ("jpeg-act", "sum", "dense", 4.0),
        ("jpeg-act", "relu", "signs", 32.0),
        ("jpeg-act", "relu", "sparse", 6.0),
        ("jpeg-act", "pool", "sparse", 5.0),
        ("jpeg-act", "conv", "unfit", 4.0),
        ("jpeg-act", "mean", "unfit", 4.0),  # nothing of that producer: all of the kind
        ("jpeg-act", "dropout", "sparse", 2 / (1 / 6 + 1 / 5)),
        ("cdma", "relu", "signs", 2.0),  # keeps no signs
        ("cdma", "conv", "unfit", 2 / (1 / 2 + 1)),  # nothing of the kind: all
    ],
)
def test_ratio_of_kind_and_producer(table, codec, producer, kind, expected):
    assert table[codec].ratio(OffloadActivation(producer, kind, (1, 1, 8, 8))) == pytest.approx(expected)


def test_ratios_come_back_from_json(table):
    again = ratios.Ratios.from_dict(json.loads(json.dumps(table["jpeg-act"].to_dict())))
    assert again == table["jpeg-act"]


def test_shipped_ratios_serve_every_network():
    shipped = ratios.shipped()
    for network in networks.shipped().values():
        for codec, found in shipped[network.family].items():
            for activation in network.activations:
                # A block of 64 float32 values takes 2048 bits, and in JPEG-BASE at least 6.
                assert 0.9 < found.ratio(activation) <= 2048 / 6, (network.name, codec, activation)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("{", "is no results.json"),
        ('{"model": "resnet"}', "is no results.json"),
        (json.dumps(RESULTS).replace('"ratio": 4.0', '"ratio": 0'), "is no results.json"),
        ('{"model": "resnet", "runs": []}', "has no compressed run"),
    ],
)
def test_what_is_no_results_json_is_refused(tmp_path, content, said):
    path = tmp_path / "results.json"
    path.write_text(content)
    with pytest.raises(UserError, match=said):
        ratios.read(path)
    with pytest.raises(UserError, match="cannot read"):
        ratios.read(tmp_path / "missing.json")


FIGURES = {"critical_path_ns": {"full": 2.0, "half": 4.0}, "values_per_cycle": {"compress": 32.0, "decompress": 16.0}}


def test_unit_of_configurations_json():
    array = unit.of_figures(4, "full", FIGURES)
    assert array.clock_hz == pytest.approx(500e6)
    assert array.bytes_per_s("compress", Mode.SFPR) == pytest.approx(32 * 4 * 500e6)
    assert array.bytes_per_s("decompress", None) == pytest.approx(16 * 4 * 500e6)
    assert array.resized(8).bytes_per_s("compress", None) == pytest.approx(64 * 4 * 500e6)


def measurement(direction, mode, rate, values=3200, extra=30):
    return {
        "direction": direction,
        "mode": mode,
        "values_per_cycle": rate,
        "possible": 32.0,
        "values": values,
        "cycles": values / rate + extra,
    }


def test_rates_of_a_verify_report(tmp_path):
    path = tmp_path / "report.json"
    rows = [
        measurement("compress", "jpeg-act", 32.0),
        measurement("compress", "jpeg-act", 30.0),
        measurement("compress", "brc", 31.0),
    ]
    rows += [measurement("decompress", "brc", 28.0, extra=40), measurement("compress", "bypass", 1.0)]
    other = [measurement("compress", "brc", 2.0)]
    results = [{"group": "array", "measurements": rows}, {"group": "array[cdus=3,duplex=half]", "measurements": other}]
    path.write_text(json.dumps({"results": results}))
    array = unit.with_rates(unit.of_figures(4, "full", FIGURES), path)
    assert array.values_per_cycle == {"compress": 30.0, "decompress": 28.0}
    assert array.bytes_per_s("compress", Mode.BRC) == pytest.approx(31 * 4 * 500e6)
    assert array.bytes_per_s("compress", Mode.JPEG_ACT) == pytest.approx(30 * 4 * 500e6)
    assert array.bytes_per_s("compress", Mode.SFPR) == pytest.approx(30 * 4 * 500e6)  # not measured: the lowest
    assert array.start_seconds("decompress") == pytest.approx(40 / 500e6)
    with pytest.raises(UserError, match="no rates of an array of 8 CDUs"):
        unit.with_rates(unit.of_figures(8, "full", FIGURES), path)


def test_rates_behind_a_dma_engine(tmp_path):
    path = tmp_path / "report.json"
    rows = [measurement(direction, "brc", 3.9, extra=200) | {"possible": 8} for direction in ("compress", "decompress")]
    path.write_text(json.dumps({"results": [{"group": "dma_array", "measurements": rows}]}))
    array = unit.with_rates(unit.of_figures(1, "full", FIGURES), path)
    assert array.bytes_per_s("compress", Mode.BRC) == pytest.approx(3.9 * 4 * 500e6)
    assert array.start_seconds("decompress") == pytest.approx(200 / 500e6)


def test_clock_of_a_synth_report(tmp_path):
    path = tmp_path / "report.json"
    path.write_text(json.dumps({"blocks": {"array": {"critical_path_ns": 1.25}}}))
    array = unit.of_figures(4, "full", FIGURES)
    assert unit.with_clock(array, path).clock_hz == pytest.approx(800e6)
    path.write_text(json.dumps({"blocks": {"dct": {"critical_path_ns": 1.25}}}))
    with pytest.raises(UserError, match="no block array"):
        unit.with_clock(array, path)
    for damaged in ({}, {"critical_path_ns": 0}, {"critical_path_ns": None}, 3):
        path.write_text(json.dumps({"blocks": {"array": damaged}}))
        with pytest.raises(UserError, match="no critical path of block array"):
            unit.with_clock(array, path)
    path.write_text("[]")
    with pytest.raises(UserError, match=r"no report\.json"):
        unit.with_clock(array, path)


def test_the_anchor_is_met():
    """With the efficiency found, the V100 takes ResNet-50 at the published rate."""
    facts = platform.facts()
    anchor = networks.shipped()["resnet50"]
    part = platform.compute_efficiency(facts, anchor)
    assert 0.5 < part < 1
    reached = facts["anchor_memory_bytes_per_s"]["value"] * facts["memory_efficiency"]["value"]
    v100 = platform.Platform(15.7e12 * part, reached, 1, 1, 1)
    assert anchor.batch / v100.step_seconds(anchor) == pytest.approx(367)


def test_every_number_has_a_source():
    assert all(set(fact) == {"value", "source"} and fact["source"] for fact in platform.facts().values())


def test_a_unit_with_an_engine_takes_the_cycles_of_its_model(tmp_path):
    """Job by job, and without a report of its rates; another number of CDUs has rates in proportion."""
    config = CduConfig(dma_bits=128)
    path = tmp_path / "synth.json"
    path.write_text(json.dumps({"blocks": {"array": {"critical_path_ns": 1.25}}}), encoding="utf-8")
    array, source = unit.described(config, None, None, path, "mine.toml")
    assert source == f"cycles: the model of the DMA engine at a latency of 40 cycles, clock: {path}"
    shape, nbytes, packed = (2, 3, 20, 24), 4 * 2 * 3 * 20 * 24, 1500.0
    for channel in Channel:
        expected = job_cycles(config, channel, Mode.JPEG_ACT, shape, 1500, 40) * 1.25e-9
        assert array.job_seconds(channel.value, Mode.JPEG_ACT, shape, nbytes, packed) == pytest.approx(expected)
        # A port of 16 bytes moves 4 values per cycle
        assert array.mode_rates[channel.value, "sfpr"] == pytest.approx(4, rel=0.02)
    doubled = array.resized(2)
    assert doubled.engine is None
    assert doubled.mode_rates["compress", "sfpr"] == 2 * array.mode_rates["compress", "sfpr"]
    with pytest.raises(UserError, match=r"--config mine\.toml was not measured: give --verify and --synth"):
        unit.described(config, None, None, None, "mine.toml")
