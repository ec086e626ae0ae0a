"""`cdu compare`: designs of others beside our blocks, in numbers that can be counted by hand."""

import json
import re

import pytest
import typer
from cdu_cli import compare
from cdu_peers import comparison, peers
from cdu_spec import CduConfig
from cdu_synth.area.flow import Cost
from cdu_tools.errors import UserError
from typer.testing import CliRunner

#: N flip-flops and nothing else.
FLIP_FLOPS = """
module row #(parameter N = 4)(input clk, input [N-1:0] d, output reg [N-1:0] q);
  always @(posedge clk) q <= d;
endmodule
"""


@pytest.fixture
def command():
    app = typer.Typer(pretty_exceptions_enable=False)
    compare.register(app)
    app.command("other")(lambda: None)

    def run(*arguments):
        return CliRunner().invoke(app, ["compare", *(str(argument) for argument in arguments)])

    return run


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "row.v"
    path.write_text(FLIP_FLOPS)
    return path


@pytest.fixture
def flip_flop(nangate45):
    """Area of the smallest flip-flop of the library."""
    return min(cell.area for cell in nangate45.cells.values() if cell.flip_flop and cell.usable)


def test_others_and_ours_stand_in_one_table(command, source, tmp_path, nangate45, flip_flop):
    out = tmp_path / "out"
    arguments = ("--verilog", source, "--top", "row", "--parameter", "N=24", "--samples-per-cycle", 3, "--recipe", "area")
    result = command(
        *arguments, "--peers", tmp_path, "--block", "inverse_shift_quantizer", "-o", out, "--json", tmp_path / "x.json"
    )
    assert result.exit_code == 0, result.output
    content = json.loads((out / "compare.json").read_text())
    assert content == json.loads((tmp_path / "x.json").read_text())
    row, *absent, ours = content["designs"]
    # Nothing but flip-flops: the area is known without any synthesis.
    assert row["flip_flops"] == row["cells"] == 24
    assert row["area_um2"] == pytest.approx(24 * flip_flop)
    assert row["ge"] == pytest.approx(24 * flip_flop / nangate45.gate.area, abs=0.1)
    assert row["ge_per_sample_per_cycle"] == pytest.approx(row["ge"] / 3, abs=0.1)
    assert row["million_samples_per_s"] == pytest.approx(3e3 / row["critical_path_ns"], rel=1e-3)
    assert ours["name"] == "inverse_shift_quantizer"
    assert (ours["flip_flops"], ours["samples_per_cycle"]) == (100, 8)
    assert [design["name"] for design in absent] == [recipe.name for recipe in peers.recipes()]
    for design, recipe in zip(absent, peers.recipes(), strict=True):
        assert design["problem"] == f"not here: {recipe.fetch(tmp_path)}"
        assert "ge" not in design
    page = (out / "compare.md").read_text()
    assert "not a tape-out" in page
    assert re.search(r"^\| \*row\* \| .* \| area \| not known \|$", page, re.MULTILINE)
    assert all(recipe.commit in page for recipe in peers.recipes())
    assert (out / "compare.png").read_bytes() == comparison.chart(content)


def test_a_peer_that_is_there_but_cannot_be_read_fails_the_run(command, tmp_path, nangate45):
    recipe = next(recipe for recipe in peers.recipes() if recipe.name == "hls-idct-1r1c")
    for path in recipe.files:
        (tmp_path / recipe.folder / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / recipe.folder / path).write_text("module x(\n")
    result = command("--peers", tmp_path, "--block", "inverse_shift_quantizer", "--recipe", "area", "-o", tmp_path / "out")
    assert result.exit_code == 1
    content = json.loads((tmp_path / "out" / "compare.json").read_text())
    rows = {design["name"]: design for design in content["designs"]}
    assert rows[recipe.name]["problem"].startswith(f"cannot read the Verilog of {recipe.top}: ")
    assert rows[recipe.name]["commit_verified"] is False
    assert [name for name, row in rows.items() if row.get("problem", "").startswith("not here: ")] == [
        other.name for other in peers.recipes() if other.name != recipe.name
    ]
    assert rows["inverse_shift_quantizer"]["flip_flops"] == 100


def test_recipes_are_printed_with_their_commands(command):
    result = command("--recipes", "--peers", "my peers")
    assert result.exit_code == 0, result.output
    for recipe in peers.recipes():
        assert f"git clone {recipe.address} 'my peers/{recipe.folder}'" in result.output
        assert recipe.licence in result.output


def test_a_top_that_is_not_there_is_one_sentence_and_leaves_nothing(command, source, tmp_path):
    result = command("--verilog", source, "--top", "column", "-o", tmp_path / "out")
    assert isinstance(result.exception, UserError), result.output
    assert "'column' is not a valid top-level module" in str(result.exception)
    assert "\n" not in str(result.exception)
    assert not (tmp_path / "out").exists()


def test_rates_of_our_blocks():
    """A lane moves a row of 8 values per cycle, the unit 8 N; blocks without values have no rate."""
    config = CduConfig(cdus=4)
    assert [comparison.own_rate(block, config) for block in ("dct", "zvc_encoder", "compressor", None)] == [8, 8, 32, 32]
    assert comparison.own_rate("control", config) is None


def test_unknown_rates_are_not_made_up():
    cost = Cost(10.0, 12.5, 1, 0, 2, 0.5, "a", "b", 1, None, "area")
    entry = comparison.Design("x", comparison.GIVEN, cost).entry()
    assert entry["samples_per_cycle"] is None
    assert entry["ge_per_sample_per_cycle"] is None
    assert entry["mhz"] == 2000
