"""Files for other tools: power intent, whose names are made before they are used, and LibreLane's configuration."""

import json
from itertools import pairwise
from pathlib import Path

import pytest
import tcl
from cdu.delivery import generator
from cdu.delivery.upf import upf
from cdu_spec import CduConfig

#: Commands of UPF in use: whether the first word is a new name, and the options whose words must be names.
UPF = {
    "upf_version": (False, ()),
    "set_design_top": (False, ()),
    "create_supply_port": (True, ()),
    "create_supply_net": (True, ()),
    "create_logic_port": (True, ()),
    "create_supply_set": (True, ()),
    "create_power_domain": (True, ()),
    "connect_supply_net": (False, ("-ports",)),
    "set_isolation": (True, ("-domain", "-isolation_signal")),
}


def test_the_power_intent_uses_only_what_it_has_made():
    made = generator.kept(CduConfig())
    known = {"VDD", "VSS"}
    named = set()
    for command, first, *rest in tcl.commands(made.flows[".upf"]):
        new, references = UPF[command]
        if new:
            named.add(first)
        for option, word in pairwise(rest):
            if option in references:
                assert word in named
            if option in ("-function", "-supply"):
                assert tcl.inside(word)[1] in named
    assert known <= named
    assert f"set_design_top {made.top}\n" in made.flows[".upf"]


@pytest.mark.parametrize("has_idle", [True, False])
def test_the_power_intent_of_idle_is_that_of_a_unit_with_it(has_idle):
    """Units with a DMA engine or clocks of their own have none; what is off is idle."""
    text = upf("cdu_one", [{"name": "irq"}, *([{"name": "idle"}] if has_idle else [])])
    isolated = [words for words in tcl.commands(text) if words[0] == "set_isolation"]
    clamps = {words[1]: words[words.index("-clamp_value") + 1] for words in isolated}
    assert clamps == {"outputs": "0"} | ({"idle": "1"} if has_idle else {})
    assert ("idle" in text) == has_idle


@pytest.mark.parametrize("block", [None, "shift_quantizer"])
def test_librelane_accepts_its_configuration(block, tmp_path):
    made = generator.kept(CduConfig(), block)
    made.write(tmp_path)
    path = tmp_path / f"{made.name}_librelane.yaml"
    values = json.loads(path.read_text())
    files = [values["PNR_SDC_FILE"], values["SIGNOFF_SDC_FILE"], *values["VERILOG_FILES"]]
    assert all((tmp_path / file.removeprefix("dir::")).is_file() for file in files)
    assert (values["DESIGN_NAME"], values["CLOCK_PORT"]) == (made.top, ["clk"])
    config = pytest.importorskip("librelane.config")
    flow_module, flows = pytest.importorskip("librelane.config.flow"), pytest.importorskip("librelane.flows")
    flow = flows.Flow.factory.get(values["meta"]["flow"])
    process = {"PDK": "none", "STD_CELL_LIBRARY": "cells", "PDK_ROOT": str(tmp_path)}
    steps = (variable for step in flow.Steps for variable in step.config_vars)
    variables = {variable.name: variable for variable in [*flow_module.flow_common_variables, *flow.config_vars, *steps]}
    wanted = [variable for variable in variables.values() if not variable.pdk or variable.name in process]

    def load(**changes):
        options = {"pdk": "none", "scl": "cells", "pdk_root": str(tmp_path), "design_dir": str(tmp_path)}
        return config.Config.load([process, values | changes], wanted, **options, _load_pdk_configs=False)[0]

    assert [Path(file).name for file in load()["VERILOG_FILES"]] == [f"{made.name}.v"]
    with pytest.raises(config.InvalidConfig, match="CLOCK_PERIODE"):
        load(CLOCK_PERIODE=1)
