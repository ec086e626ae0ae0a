"""Memories bound to macros: what a file may say, and a buffer whose macro punishes what the wrapper's rules forbid."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from cdu.delivery import generator, verilog
from cdu.delivery.memories import Memories, read_memories
from cdu.parts.ram import Ram
from cdu_cli.main import app
from cdu_spec.config import CduConfig
from cdu_spec.config_rules import ConfigError
from cdu_tools import verilator
from cdu_verif.regression import plan, regression
from tools_here import needs_verilator
from typer.testing import CliRunner

ROOT = Path(__file__).parents[3]
PINS = {
    "CLKW": "clk",
    "WENB": "~write_enable",
    "AW": "write_address",
    "D": "write_data",
    "TEST": "2'b00",
    "CLKR": "clk",
    "REN": "read_enable",
    "AR": "read_address",
    "Q": "read_data",
}
#: 128 words of 24 bits: deeper than the memory, and three side by side are wider. A word that is written while it is read, or
#: that was never written, comes as garbage.
MODEL = """
module ram_128x24 (input CLKW, input WENB, input [6:0] AW, input [23:0] D, input [1:0] TEST,
                   input CLKR, input REN, input [6:0] AR, output reg [23:0] Q);
  reg [23:0] words [0:127];
  reg [127:0] known = 128'd0;
  always @(posedge CLKW) if (!WENB && TEST == 2'b00) begin
    words[AW] <= D;
    known[AW] <= 1'b1;
  end
  always @(posedge CLKR) if (REN) Q <= (known[AR] && !(!WENB && AW == AR)) ? words[AR] : ~words[AR] ^ 24'h5a5a5a;
endmodule
"""


def toml(pins=PINS, more="", **numbers):
    sizes = {"width": 64, "depth": 64, "macro_width": 24, "macro_depth": 128} | numbers
    lines = ["[[memory]]", 'macro = "ram_128x24"', *(f"{key} = {value}" for key, value in sizes.items()), more, "[memory.pins]"]
    return "\n".join([*lines, *(f'{pin} = "{signal}"' for pin, signal in pins.items())]) + "\n"


@pytest.fixture
def file(tmp_path):
    def write(text):
        path = tmp_path / "memories.toml"
        path.write_text(text, encoding="utf-8")
        return path

    return write


def test_registers_are_what_memories_are_by_default():
    made = generator.generate(CduConfig(), "inverse_alignment_buffer")
    assert made.manifest["memories"] == [{"width": 64, "depth": 64, "ports": "1r1w", "count": 1, "macro": None}]
    assert made.verilog.count("module cdu_inverse_alignment_buffer__ram_1r1w #(") == 1
    assert "initial" not in made.verilog.partition("__ram_1r1w #(")[2]
    dct = generator.generate(CduConfig(), "dct")
    assert dct.manifest["memories"] == []
    assert "ram_1r1w" not in dct.verilog


@pytest.mark.parametrize("latches", [False, True])
def test_two_units_in_one_design_share_no_module(latches):
    """A unit may also be called as the module of memories once was."""
    tops = ("cdu_one", "cdu_ram_1r1w")
    texts = [verilog.convert(Ram(8, 4), top, memories=Memories(latches=latches)) for top in tops]
    one, other = ({*re.findall(r"^module (\w+)", text, re.MULTILINE)} for text in texts)
    assert len(one) == len(other) == 2 + latches
    assert not one & other


def test_a_unit_lists_all_of_its_memories(file):
    made = generator.generate(CduConfig(cdus=2, modes=("jpeg-act",)), None, read_memories(file(toml(depth=32))))
    assert made.manifest["memories"] == [{"width": 64, "depth": 32, "ports": "1r1w", "count": 4, "macro": "ram_128x24"}]
    json.dumps(made.manifest)


def test_macros_for_other_sizes_change_nothing(file):
    other = read_memories(file(toml(depth=32)))
    assert generator.generate(CduConfig(), "alignment_buffer", other).verilog == (
        generator.generate(CduConfig(), "alignment_buffer").verilog
    )


def test_a_macro_for_which_there_is_no_memory_is_named(file, tmp_path):
    memories = read_memories(file(toml() + toml(depth=63)))
    made = [generator.generate(CduConfig(), block, memories).manifest for block in ("dct", "alignment_buffer")]
    assert memories.unused(made) == ["no memory is 64 x 63: macro ram_128x24 of --memories is not used"]
    with pytest.raises(
        ConfigError, match=r"no macro of --memories has the size of a memory \(64 x 64\): correct width and depth"
    ):
        read_memories(file(toml(depth=63))).unused(made)
    with pytest.raises(ConfigError, match=r"a memory \(none\)"):
        memories.unused(made[:1])
    assert len(read_memories(file("latches = true\n" + toml(depth=63))).unused(made)) == 1
    assert Memories(latches=True).unused(made) == Memories().unused(made) == []


def test_generate_says_which_macro_is_not_used(file, tmp_path):
    wanted = ["generate", "--block", "alignment_buffer", "-o", str(tmp_path / "rtl"), "--memories"]
    result = CliRunner().invoke(app, [*wanted, str(file(toml() + toml(depth=63)))])
    assert result.exit_code == 0
    assert "no memory is 64 x 63" in result.stderr
    result = CliRunner().invoke(app, [*wanted, str(file(toml(depth=63)))])
    assert "no macro of --memories has the size of a memory (64 x 64)" in str(result.exception)


@pytest.mark.parametrize("name", ["cdu_alignment_buffer", "cdu_alignment_buffer__ram_1r1w", "cdu_alignment_buffer__other"])
def test_a_macro_has_no_name_of_the_unit(name, file):
    with pytest.raises(ConfigError, match=f"macro {name} has the name of a module of cdu_alignment_buffer: use one that"):
        generator.generate(CduConfig(), "alignment_buffer", read_memories(file(toml().replace("ram_128x24", name))))


@pytest.mark.parametrize(
    "value", ["1'b9", "0'hff", "4'dff", "2'b100", "4'd16", "8'h1ff", "'b0", "01'b0", "1'bx", "1'B0", "١'b0"]
)
def test_a_constant_is_one_of_verilog(value, file):
    with pytest.raises(ConfigError, match=r"of macro ram_128x24 is not allowed: use .* a constant that fits its size"):
        read_memories(file(toml({**PINS, "TEST": value})))


@pytest.mark.parametrize("value", ["1'b1", "4'd15", "8'hfF", "12'b0"])
def test_a_constant_with_a_size_is_taken(value, file):
    assert read_memories(file(toml({**PINS, "TEST": value}))).macros[0].pins["TEST"] == value


#: One of them in the quick tests, where their memories are used alike.
BUFFERS = ["alignment_buffer", pytest.param("inverse_alignment_buffer", marks=pytest.mark.campaign)]


@needs_verilator
@pytest.mark.parametrize("holds", [True, False])
@pytest.mark.parametrize("block", BUFFERS)
def test_the_buffer_works_on_macros_that_punish_mistakes(block, holds, file, tmp_path, monkeypatch):
    bound = read_memories(file(toml(more=f"holds = {str(holds).lower()}")))
    model = MODEL if holds else MODEL.replace("if (REN) Q <= ", "Q <= !REN ? 24'h123456 : ")

    def with_model(config, name):
        made = generator.generate(config, name, bound)
        assert made.verilog.count("ram_128x24 part") == 3
        return replace(made, verilog=made.verilog + model, waivers=made.waivers + "lint_off\n")

    monkeypatch.setattr(generator, "kept", with_model)
    run = plan.runs(CduConfig(), [block], full=False)[0]
    tests = regression.simulate(run, regression.RunSettings(tmp_path)).tests
    assert [test.message for test in tests if test.status != "pass"] == []
    assert len(tests) > 3


@needs_verilator
@pytest.mark.parametrize("block", BUFFERS)
def test_the_buffer_works_on_latches(block, tmp_path, monkeypatch):
    def on_latches(config, name):
        made = generator.generate(config, name, read_memories(Path("latches")))
        assert [memory["macro"] for memory in made.manifest["memories"]] == ["latches"]
        assert made.verilog.count(f"{made.top}__clock_gate gate") == 1
        return made

    monkeypatch.setattr(generator, "kept", on_latches)
    run = plan.runs(CduConfig(), [block], full=False)[0]
    tests = regression.simulate(run, regression.RunSettings(tmp_path)).tests
    assert [test.message for test in tests if test.status != "pass"] == []
    assert len(tests) > 3


def test_latches_stand_for_what_a_file_has_no_macro_for(file):
    path = file("latches = true\n" + toml())
    half = generator.generate(CduConfig(cdus=2), "compressor", read_memories(path))  # two memories of 64 x 32
    assert {memory["macro"] for memory in half.manifest["memories"]} == {"latches"}
    assert "ram_128x24" not in half.verilog
    bound = generator.generate(CduConfig(), "alignment_buffer", read_memories(path))
    assert {memory["macro"] for memory in bound.manifest["memories"]} == {"ram_128x24"}
    assert "module cdu_alignment_buffer__clock_gate" not in bound.verilog


@needs_verilator
def test_the_text_with_latches_has_no_warnings(tmp_path):
    made = generator.generate(CduConfig(), "alignment_buffer", Memories(latches=True))
    made.write(tmp_path)
    assert verilator.find().lint(tmp_path / f"{made.name}.v", top=made.top) == ""


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is no file of memories: use tables"),
        ("memory = 3\n", "is no file of memories"),
        ("latches = false\n", "is no file of memories: use tables .*, latches = true, or both"),
        ("latches = true\nother = 1\n", "is no file of memories"),
        ("latches = 1\n", "has latches = 1: use true or false"),
        (toml().replace("ram_128x24", "my macro"), "macro = 'my macro' is not allowed: use the name of its module"),
        (toml().replace("ram_128x24", "1r1w"), "macro = '1r1w' is not allowed"),
        ("latches = 1\n" + toml(), "has latches = 1: use true or false"),
        ("[[memory]\n", "cannot read the memories of"),
        (toml(macro_depth=32), "of 32 words cannot hold 64 words"),
        (toml(width='"64"'), "has width = '64': use a whole number"),
        (toml(more="depths = 1"), "unknown keys"),
        (toml(more="holds = 1"), "has holds = 1: use true or false"),
        (toml() + toml(), "2 macros for memories of 64 x 64: leave one"),
        (toml({**PINS, "REN": "read"}), "pin REN = 'read' of macro ram_128x24 is not allowed"),
        (toml({**PINS, "AR": "~read_address"}), "pin AR = '~read_address'"),
        (toml({**PINS, "REN": "1'b1"}), "no pin of macro ram_128x24 is connected to read_enable"),
    ],
)
def test_what_a_file_may_not_say(text, message, file):
    with pytest.raises(ConfigError, match=message) as caught:
        read_memories(file(text))
    assert "\n" not in str(caught.value)


def test_a_file_may_say_latches_alone(file):
    assert read_memories(file("latches = true\n")) == Memories([], latches=True)


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(ConfigError, match="cannot read the memories of"):
        read_memories(tmp_path / "none.toml")


def test_nothing_is_kept_between_deliveries():
    memories = Memories()
    generator.generate(CduConfig(), "alignment_buffer", memories)
    generator.generate(CduConfig(), "dct", memories)
    assert memories.listed() == []


@pytest.mark.parametrize("name", ["any", "ihp_sg13g2", "sky130"])
def test_the_examples_bind_the_usual_unit(name):
    memories = read_memories(ROOT / "examples" / "memories" / f"{name}.toml")
    generator.generate(CduConfig(), "alignment_buffer", memories)
    (listed,) = memories.listed()
    assert listed["macro"] == memories.macros[0].macro
