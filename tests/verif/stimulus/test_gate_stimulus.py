"""Netlists of small blocks on a training network's jobs: the golden model's words come out."""

from dataclasses import replace

import pytest
import torch
from actcodec.codecs import codec
from actcodec.study.data import load
from actcodec.study.experiment import Recipe
from cdu.delivery import generator
from cdu_spec import CduConfig
from cdu_spec.bitstream import Mode
from cdu_synth.library import pdk
from cdu_synth.power.gate_report import GateMeter
from cdu_synth.power.gate_simulator import GateSimulationError
from cdu_tools import yosys
from cdu_tools.errors import MissingToolError, UserError
from cdu_verif.stimulus import gate_stimulus, recorded_jobs

MODES = (Mode.JPEG_ACT, Mode.SFPR_ZVC)
CONFIG = CduConfig()


@pytest.fixture(scope="module")
def recorded():
    return recorded_jobs.record(Recipe.usual("resnet", steps=2, batch=8), load("digits", None, 64), MODES, 1)


@pytest.fixture(scope="module")
def library():
    try:
        return pdk.find("nangate45").read()
    except MissingToolError as error:
        pytest.skip(str(error))


def _stimulus(top, mode, recordings):
    ports = {port["name"]: port for port in generator.generate(CONFIG, top).manifest["ports"]}
    items = recorded_jobs.exchanges(recordings, mode, CONFIG)
    return gate_stimulus.gate_stimulus(top, CONFIG, ports, items)


@pytest.mark.parametrize("mode", MODES)
def test_jobs_are_the_codecs(recorded, mode):
    """What is played is what the codec keeps, and values from which it is restored."""
    for one, (item, view) in zip(recorded[mode], recorded_jobs.exchanges(recorded[mode], mode, CONFIG), strict=True):
        packed = codec(mode.label, scale_bits=CONFIG.scale_bits).compress(one.values)
        assert bytes(packed.payload.tolist()) == item.payload
        assert item.beats.numel() >= one.values.numel()
        assert view.mode is mode
        assert item.compression.mode is item.decompression.mode is mode


def test_normal_values_have_the_same_shapes(recorded):
    drawn = recorded_jobs.normal_values(recorded[Mode.JPEG_ACT])
    assert [one.values.shape for one in drawn] == [one.values.shape for one in recorded[Mode.JPEG_ACT]]
    assert torch.cat([one.values.flatten() for one in drawn]).std() == pytest.approx(1, abs=0.05)


def test_a_netlist_gives_the_golden_words(recorded, library, tmp_path, monkeypatch):
    monkeypatch.setenv("CDU_CACHE_DIR", str(tmp_path))
    made = generator.generate(CONFIG, "inverse_shift_quantizer")
    stimulus = _stimulus(made.name, Mode.JPEG_ACT, recorded[Mode.JPEG_ACT][:2])
    meter = GateMeter(made.verilog, made.name, library, 1.5, "balanced", yosys.engine())
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
    for mode in MODES:
        if not gate_stimulus.has_use(top, mode):
            continue
        stimulus = _stimulus(top, mode, recorded[mode][:1])
        assert stimulus.values % 64 == 0
        plain = "o" if top.startswith(("inverse", "idct")) or top.endswith("decoder") else "i"
        words = (stimulus.expected if plain == "o" else stimulus.inputs)[plain]
        assert len(words) == stimulus.values // 8


def test_what_leaves_the_quantiser_is_the_codecs_payload(recorded):
    """The quantiser's golden words, made from the values, are the coder's, which are decoded from the payload."""
    quantized, coded = (_stimulus(top, Mode.JPEG_ACT, recorded[Mode.JPEG_ACT]) for top in ("shift_quantizer", "zvc_encoder"))
    values = (1 << 64) - 1
    assert list(quantized.expected["o"]) == [word & values for word in coded.inputs["i"]]


def test_what_cannot_be_played():
    with pytest.raises(UserError, match="block 'sfpr' cannot be played"):
        gate_stimulus.check("sfpr", MODES, CONFIG)
    with pytest.raises(UserError, match="'brc' has no tensors"):
        gate_stimulus.modes(["sfpr+zvc", "brc"])
    with pytest.raises(UserError, match="nothing to do"):
        gate_stimulus.check("dct", [Mode.SFPR_ZVC], CONFIG)
    with pytest.raises(UserError, match="built without mode"):
        gate_stimulus.check("dct", [Mode.JPEG_ACT], CONFIG.override(modes=("sfpr+zvc",)))
