"""Netlists of small blocks on a training network's jobs: the golden model's words come out."""

from dataclasses import replace

import pytest
import torch
from actcodec.codecs import codec
from actcodec.study.data import load
from actcodec.study.experiment import Recipe
from cdu.delivery import generator
from cdu_spec import CduConfig
from cdu_spec.coding import coder_of
from cdu_spec.modes import Coder, Mode
from cdu_synth.library import pdk
from cdu_synth.power.gate_report import GateMeter
from cdu_synth.power.gate_simulator import GateSimulationError
from cdu_tools import yosys
from cdu_tools.errors import MissingToolError, UserError
from cdu_verif.stimulus import gate_stimulus, recorded_jobs

MODES = (Mode.JPEG_ACT, Mode.SFPR_ZVC)
CONFIG = CduConfig(coders=("zvc", "gmc"))
#: Codecs with the mode of their jobs.
CODECS = {"jpeg-act": Mode.JPEG_ACT, "jpeg-gmc": Mode.JPEG_ACT, "sfpr+zvc": Mode.SFPR_ZVC}


@pytest.fixture(scope="module")
def recorded():
    return recorded_jobs.record(Recipe.usual("resnet", steps=2, batch=8), load("digits", None, 64), MODES, 1)


@pytest.fixture(scope="module")
def library():
    try:
        return pdk.find("nangate45").read()
    except MissingToolError as error:
        pytest.skip(str(error))


def _stimulus(top, name, recordings):
    ports = {port["name"]: port for port in generator.kept(CONFIG, top).manifest["ports"]}
    items = recorded_jobs.exchanges(recordings, name, CONFIG)
    return gate_stimulus.gate_stimulus(top, CONFIG, ports, items)


@pytest.mark.parametrize(("name", "mode"), CODECS.items())
def test_jobs_are_the_codecs(recorded, name, mode):
    """The stimulus is the codec's payload, and values from which it is restored."""
    for one, (item, view) in zip(recorded[mode], recorded_jobs.exchanges(recorded[mode], name, CONFIG), strict=True):
        packed = codec(name, scale_bits=CONFIG.scale_bits).compress(one.values)
        assert bytes(packed.payload.tolist()) == item.payload
        assert coder_of(item.compression.how) is coder_of(packed.header.how)
        assert item.decompression.how == packed.header.how
        assert item.beats.numel() >= one.values.numel()
        assert view.mode is mode
        assert item.compression.mode is item.decompression.mode is mode


def test_normal_values_have_the_same_shapes(recorded):
    drawn = recorded_jobs.normal_values(recorded[Mode.JPEG_ACT])
    assert [one.values.shape for one in drawn] == [one.values.shape for one in recorded[Mode.JPEG_ACT]]
    assert torch.cat([one.values.flatten() for one in drawn]).std() == pytest.approx(1, abs=0.05)


def test_a_netlist_gives_the_golden_words(recorded, library, tmp_path, monkeypatch):
    monkeypatch.setenv("CDU_CACHE_DIR", str(tmp_path))
    made = generator.kept(CONFIG, "inverse_shift_quantizer")
    stimulus = _stimulus(made.name, "jpeg-act", recorded[Mode.JPEG_ACT][:2])
    meter = GateMeter(made.verilog, made.top, library, 1.5, "balanced", yosys.engine())
    given = stimulus.inputs, stimulus.expected, stimulus.settings, stimulus.values
    figures = meter.measure(*given)
    # 8 values in each cycle but the first, and one pJ is a mW for a ns.
    assert figures["words_checked"] == stimulus.values // 8
    assert figures["cycles"] == stimulus.values // 8 + 1
    energy = figures["milliwatts"] * 1.5 * figures["cycles"] / stimulus.values
    assert figures["picojoules_per_value"] == pytest.approx(energy)
    assert sum(figures["milliwatts_by_cause"].values()) == pytest.approx(figures["milliwatts"])
    assert meter.measure(*given) == figures
    wrong = replace(stimulus, expected={"o": [stimulus.expected["o"][0] ^ 1, *stimulus.expected["o"][1:]]})
    with pytest.raises(GateSimulationError, match="differs from the golden model: 1 words of o, the first is word 0"):
        meter.measure(wrong.inputs, wrong.expected, wrong.settings, wrong.values)


@pytest.mark.parametrize("top", [*gate_stimulus.TRANSFORM_BLOCKS, *gate_stimulus.CODER_BLOCKS])
def test_stimuli_say_how_much_work_they_are(recorded, top):
    """Words in and out stand for the same values, 8 to a row."""
    for name, mode in CODECS.items():
        if not gate_stimulus.has_use(top, name):
            continue
        stimulus = _stimulus(top, name, recorded[mode][:1])
        assert stimulus.values % 64 == 0
        plain = "o" if top.startswith(("inverse", "idct")) or top.endswith("decoder") else "i"
        words = (stimulus.expected if plain == "o" else stimulus.inputs)[plain]
        assert len(words) == stimulus.values // 8


@pytest.mark.parametrize(("name", "encoder"), [("jpeg-act", "zvc_encoder"), ("jpeg-gmc", "gmc_encoder")])
def test_what_leaves_the_quantiser_is_the_codecs_payload(recorded, name, encoder):
    """The quantiser's golden words, made from the values, are the coder's, which are decoded from the payload."""
    quantized, coded = (_stimulus(top, name, recorded[Mode.JPEG_ACT]) for top in ("shift_quantizer", encoder))
    values = (1 << 64) - 1
    assert list(quantized.expected["o"]) == [word & values for word in coded.inputs["i"]]


def test_what_leaves_gmcs_encoder_is_the_codecs_payload(recorded):
    """The slices, cut to their byte counts, are the golden payload; the decoder is told the reconstruction point."""
    (one,) = recorded[Mode.JPEG_ACT][:1]
    packed = codec("jpeg-gmc", scale_bits=CONFIG.scale_bits).compress(one.values)
    (port,) = (p for p in generator.kept(CONFIG, "gmc_encoder").manifest["ports"] if p["name"] == "o__payload")
    data, count = (next(field for field in port["fields"] if field["name"] == name) for name in ("data", "count"))
    found = b""
    for word in _stimulus("gmc_encoder", "jpeg-gmc", [one]).expected["o"]:
        kept = word >> count["offset"] & (1 << count["width"]) - 1
        found += (word >> data["offset"] & (1 << data["width"]) - 1).to_bytes(data["width"] // 8, "little")[:kept]
    assert found == bytes(packed.payload.tolist())


def test_the_coder_and_the_point_stand_in_the_job(recorded):
    """Jobs of both codecs differ in the fields that select the coder and the reconstruction point."""
    jobs = {}
    for name in ("jpeg-act", "jpeg-gmc"):
        (word,) = _stimulus("decompressor", name, recorded[Mode.JPEG_ACT][:1]).inputs["job"]
        (port,) = (p for p in generator.kept(CONFIG, "decompressor").manifest["ports"] if p["name"] == "job__payload")
        (field,) = (one for one in port["fields"] if one["name"] == "how")
        jobs[name] = word >> field["offset"] & (1 << field["width"]) - 1
    # Coder.GMC = 1 in the lowest bit, and 3/8 of a step above it.
    assert jobs == {"jpeg-act": Coder.ZVC, "jpeg-gmc": Coder.GMC | 3 << 1}


def test_what_cannot_be_played():
    for top, codecs, config, said in (
        ("sfpr", CODECS, CONFIG, "block 'sfpr' cannot be played"),
        ("dct", ["sfpr+zvc", "brc"], CONFIG, "'brc' has no tensors"),
        ("dct", ["sfpr+zvc"], CONFIG, "nothing to do"),
        ("zvc_encoder", ["jpeg-gmc"], CONFIG, "nothing to do"),
        ("gmc_decoder", ["jpeg-act", "sfpr+zvc"], CONFIG, "nothing to do"),
        ("dct", ["jpeg-act"], CduConfig(modes=("sfpr+zvc",)), "built without mode"),
        ("compressor", ["jpeg-gmc"], CduConfig(), "without coder gmc, which codec jpeg-gmc needs: use --set coders=gmc"),
        ("compressor", ["jpeg-act"], CduConfig(coders=("gmc",)), "without coder zvc, which codec jpeg-act needs"),
    ):
        with pytest.raises(UserError, match=said):
            gate_stimulus.check(top, codecs, config)
    gate_stimulus.check("compressor", ["sfpr+zvc"], CduConfig(coders=("gmc",)))
