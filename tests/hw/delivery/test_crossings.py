"""Crossings between clocks: those of asynchronous FIFOs are found, and a path that is none of them is seen."""

import re
from collections import Counter

import pytest
from cdu.delivery import generator
from cdu.delivery.crossings import DATA, LOGIC, RESET, SYNCHRONISER, crossings
from cdu.delivery.memories import SIGNALS, Macro, Memories
from cdu.parts.ram import RAM_MODULE
from cdu_spec import CduConfig
from cdu_spec.config_rules import OWN_CLOCKS

CLOCKED = CduConfig(modes=("brc",), own_clocks=OWN_CLOCKS, reset_kind="async")


@pytest.fixture(scope="module")
def made():
    return generator.kept(CLOCKED)


def test_each_fifo_has_its_pointers_its_words_and_a_reset(made):
    names = set(re.findall(r"^  cdu\w+ (\w+_crossing) \($", made.verilog, re.MULTILINE))
    found = made.manifest["crossings"]
    assert {crossing["register"].split(".")[0] for crossing in found} == names
    kinds = Counter((crossing["register"].split(".")[0], crossing["kind"]) for crossing in found)
    for name in names:
        assert kinds[name, SYNCHRONISER] == 2, "a pointer in each direction"
        assert kinds[name, DATA] == 1
        assert kinds[name, RESET] == 2, "both registers of the synchroniser of the sender's reset"
        ends = [{one["begin"], one["end"]} for one in found if one["register"].startswith(f"{name}.")]
        assert all(end == ends[0] and len(end) == 2 for end in ends)
    assert LOGIC not in {crossing["kind"] for crossing in found}


def test_one_clock_has_no_crossing():
    assert generator.kept(CduConfig()).manifest["crossings"] == []


@pytest.mark.parametrize("latches", [False, True])
def test_what_memories_are_made_of_changes_no_crossing(made, latches):
    """Macros are not in the text: the memories are taken for registers."""
    macro = Macro(64, 64, "sram", 64, 64, {signal: signal for signal in SIGNALS})
    ram = Memories([macro], latches).module(made.top, [(64, 64), (32, 16)])
    instance = f"{made.top}{RAM_MODULE} #(.WIDTH(64), .DEPTH(64)) ram (.clk(clk));\nendmodule\n"
    text = re.sub(rf"(^module {made.top} \(.*?)^endmodule\n", rf"\1{instance}", made.verilog, flags=re.MULTILINE | re.DOTALL)
    assert text != made.verilog
    found = crossings(text + ram, made.top, made.manifest["ports"], CLOCKED)
    assert [crossing.entry() for crossing in found] == made.manifest["crossings"]


def test_a_path_past_a_synchroniser_is_seen(made):
    """The second register of a pointer's synchroniser takes the pointer itself."""
    module = re.search(r"module \w+_cdc \(.*?endmodule", made.verilog, re.DOTALL)[0]
    (source,) = re.findall(r"stage0 <= (\w+);", module)
    faulty = made.verilog.replace(module, module.replace("stage1 <= stage0;", f"stage1 <= {source};"))
    assert faulty != made.verilog
    found = crossings(faulty, made.top, made.manifest["ports"], CLOCKED)
    assert LOGIC in {crossing.kind for crossing in found}


def test_logic_in_front_of_a_synchroniser_is_seen(made):
    module = re.search(r"module \w+_cdc \(.*?endmodule", made.verilog, re.DOTALL)[0]
    (source,) = re.findall(r"stage0 <= (\w+);", module)
    faulty = made.verilog.replace(module, module.replace(f"stage0 <= {source};", f"stage0 <= {source} ^ stage1;"))
    found = crossings(faulty, made.top, made.manifest["ports"], CLOCKED)
    assert LOGIC in {crossing.kind for crossing in found}
