"""Cache of generated blocks: its content equals a new generation, and each block is generated once."""

import json
import re
from dataclasses import asdict

import pytest
from cdu.delivery import generator
from cdu.delivery.blocks import BLOCKS, changes, configured, impossible
from cdu_spec import CduConfig
from cdu_spec.config_rules import ConfigError
from cdu_tools import cache


def test_what_is_kept_is_what_is_generated(monkeypatch, tmp_path):
    monkeypatch.setenv(cache.FOLDER_VARIABLE, str(tmp_path / "cache"))
    calls = []
    first, second = (generator.kept(CduConfig(), "brc_encoder", lambda: calls.append(0)) for _ in range(2))
    assert len(calls) == 1
    assert first == second
    made = generator.generate(CduConfig(), "brc_encoder")
    assert asdict(first) == json.loads(json.dumps(asdict(made)))
    texts = []
    for name, one in (("made", made), ("kept", first)):
        (tmp_path / name).mkdir()
        texts.append([path.read_text() for path in one.write(tmp_path / name)])
    assert texts[0] == texts[1]
    generator.kept(CduConfig(cdus=2), "brc_encoder", lambda: calls.append(1))
    generator.kept(CduConfig(), "brc_decoder", lambda: calls.append(2))
    assert calls == [0, 1, 2]


def test_nothing_is_kept_of_what_cannot_be_generated(monkeypatch, tmp_path):
    monkeypatch.setenv(cache.FOLDER_VARIABLE, str(tmp_path / "cache"))
    for _ in range(2):
        with pytest.raises(ConfigError, match="dtc"):
            generator.kept(CduConfig(), "dtc")


def test_two_units_have_no_name_of_a_file_or_module_in_common(tmp_path):
    """Two units that ``--set`` made of one configuration can be used in one system."""
    made = [generator.kept(CduConfig(modes=("sfpr",), cdus=cdus)) for cdus in (1, 2)]
    files = [{path.name for path in one.write(tmp_path)} for one in made]
    modules = [set(re.findall(r"^module (\w+)", one.verilog, re.MULTILINE)) for one in made]
    assert not files[0] & files[1]
    assert not modules[0] & modules[1]
    assert made[1].name == "tiny_modes_sfpr_cdus_2"
    assert made[1].top in made[1].core
    assert f"<name>{made[1].name}</name>" in made[1].descriptions[".svd"]
    assert f"addrmap {made[1].top} " in made[1].descriptions[".rdl"]


@pytest.mark.parametrize("block", BLOCKS)
def test_what_is_delivered_says_with_what_a_block_was_built(block):
    config = CduConfig()
    told = configured(block, config).to_dict()
    assert changes(block, config) == {name: value for name, value in told.items() if config.to_dict().get(name) != value}
    if block in ("distributor", "zvc_encoder"):
        made = generator.kept(config, block)
        assert made.manifest["config"] == told
        assert f"// Configuration: {json.dumps(told)}\n" in made.verilog
    assert configured(block, configured(block, config)) == configured(block, config)


def test_a_distributor_has_two_cdus():
    assert changes("distributor", CduConfig()) == {"cdus": 2}
    assert changes("distributor", CduConfig(cdus=3)) == {}
    assert changes("tiny", CduConfig()) == {}


@pytest.mark.parametrize(
    ("block", "given", "changed"),
    [
        ("range_finder", {"reciprocal_bits": 12}, {"reciprocal_bits": 0}),
        ("axi_read_master", {"completions": 8}, {"dma_bits": 128, "completions": 0}),
        ("axi_write_master", {"own_clocks": ("values",), "reset_kind": "async"}, {"dma_bits": 128, "own_clocks": ()}),
        ("clocked_array", {"dma_bits": 64}, {"own_clocks": ("registers",), "reset_kind": "async"}),
        ("lane_encoder", {"modes": ("brc",)}, {"modes": ("jpeg-act", "brc"), "coders": ("zvc", "gmc")}),
    ],
)
def test_a_block_is_built_without_parameters_that_it_cannot_have(block, given, changed):
    config = CduConfig(**given)
    own = changed | ({"modes": configured(block, config).modes} if block == "range_finder" else {})
    assert configured(block, config) == config.override(**own)


@pytest.mark.parametrize("given", [{"completions": 8}, {"own_clocks": ("values",), "reset_kind": "async"}], ids=str)
def test_a_unit_keeps_its_parameters_or_is_refused(given):
    with pytest.raises(ConfigError, match=f"^block dma_array cannot be built: {next(iter(given))} = .* with a DMA engine"):
        configured("dma_array", CduConfig(**given))
    assert list(impossible(CduConfig(**given))) == ["dma_array"]
    assert not impossible(CduConfig())
