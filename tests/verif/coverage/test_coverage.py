"""Coverage: Verilator's output is read, runs are merged, waivers must apply to something, stages follow their rules."""

import csv
import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from cdu.delivery import generator
from cdu.parts.ram import RAM_MODULE
from cdu_cli.main import app
from cdu_spec.config import CONFIGS, CduConfig
from cdu_tools.errors import UserError
from cdu_tools.progress import Silent
from cdu_tools.report import Table
from cdu_verif.coverage import cover_report, evidence, sign_off, verify_folder, waivers
from cdu_verif.coverage.constants import constant_bits, held_constant_bits
from cdu_verif.coverage.points import Merged, modules
from cdu_verif.coverage.sign_off import Facts
from cdu_verif.coverage.verify_folder import VerifiedBlock
from cdu_verif.coverage.waivers import Waiver
from cdu_verif.regression import plan
from cdu_verif.simulation import coverage
from typer.testing import CliRunner

VERILOG = """// {name}
module top(a, b, x);
{declared}
  assign _01_ = a & b;
  assign x = _01_ ? a : b;
endmodule

module top__part(i, o);
  assign o = i;
endmodule
"""
NARROW, WIDE = (VERILOG.format(name=name, declared=text) for name, text in (("one", "  wire x;"), ("two", "  wire [1:0] x;\n")))


def point(page, module, line, text, hits):
    """Return a line of coverage.dat."""
    return f"C '\x01f\x02top.v\x01l\x02{line}\x01n\x024\x01page\x02{page}/{module}\x01o\x02{text}\x01h\x02top' {hits}\n"


def counts(tmp_path, *points):
    """Return the counts of these points, written to a file and read."""
    file = tmp_path / "coverage.dat"
    file.write_text("# SystemC::Coverage-3\n" + "".join(points))
    return coverage.read(file)


def narrow(tmp_path, *hits):
    """Return a line, a branch, two toggles and an expression of NARROW."""
    branch, toggle, other, expression, inner = hits
    return counts(
        tmp_path,
        point("v_branch", "top", 5, "cond_then", branch),
        point("v_toggle", "top", 3, "x___05Fy[0]:0->1", toggle),
        point("v_toggle", "top", 3, "x___05Fy[1]:1->0", other),
        point("v_expr", "top", 5, "(_01_==1) => 1", expression),
        point("v_line", "top__part", 9, "block", inner),
    )


def wide(tmp_path, *hits):
    """Return the points of WIDE, whose lines are one further down."""
    branch, toggle, inner = hits
    return counts(
        tmp_path,
        point("v_branch", "top", 6, "cond_then", branch),
        point("v_toggle", "top", 3, "x___05Fy[0]:0->1", toggle),
        point("v_line", "top__part", 10, "block", inner),
    )


def test_kinds_are_kept_apart(tmp_path):
    summary = coverage.summary(narrow(tmp_path, 1, 1, 0, 0, 5))
    assert summary["line"] == {"points": 1, "hit": 1, "percent": 100.0}
    assert summary["branch"] == {"points": 1, "hit": 1, "percent": 100.0}
    assert summary["toggle"] == {"points": 2, "hit": 1, "percent": 50.0}
    assert summary["expression"]["hit"] == 0


@pytest.mark.parametrize(
    "line",
    [
        point("v_user", "top", 1, "x", 1),
        point("v_line", "", 1, "x", 1),
        point("v_line", "top", 1, "x", "many"),
        "no point\n",
    ],
)
def test_what_is_no_point_is_refused(tmp_path, line):
    with pytest.raises(UserError, match="line 3: no point of coverage"):
        counts(tmp_path, point("v_line", "top", 1, "block", 1), line)


def test_a_file_without_points_is_refused(tmp_path):
    with pytest.raises(UserError, match="no points of coverage"):
        counts(tmp_path)


def test_runs_are_merged_by_names_or_equal_text(tmp_path):
    """A toggle is one point of both runs, as is the line of the equal module; the branch counts for each."""
    merged = Merged("top")
    merged.add("one", NARROW, narrow(tmp_path, 1, 0, 0, 0, 0))
    labels = ["x__y[0]:0->1", "x__y[1]:1->0", "((a & b)==1) => 1", "part: i: block"]
    assert [point.label for point in merged.uncovered()] == labels
    merged.add("two", WIDE, wide(tmp_path, 0, 1, 7))
    assert {kind: len(merged.of_kind(kind)) for kind in coverage.KINDS} == {
        "line": 1,
        "branch": 2,
        "toggle": 2,
        "expression": 1,
    }
    left = [(point.kind, point.text, merged.seen[point].run, merged.seen[point].line) for point in merged.uncovered()]
    assert left == [
        ("toggle", "x__y[1]:1->0", "one", 3),
        ("expression", "((a & b)==1) => 1", "one", 5),
        ("branch", "(a & b) ? a : b: cond_then", "two", 6),
    ]


def test_equal_verilog_counts_once(tmp_path):
    """Hits of runs are added: a point missed by one run may be hit by the other."""
    merged = Merged("top")
    merged.add("one", NARROW, narrow(tmp_path, 1, 0, 1, 0, 0))
    merged.add(
        "again",
        NARROW.replace("// one", "// a longer\n// comment"),
        [replace(count, line=count.line + 1) for count in narrow(tmp_path, 0, 1, 0, 2, 3)],
    )
    assert len(merged.seen) == 5
    assert not merged.uncovered()


def test_counts_of_another_file_are_refused(tmp_path):
    found = narrow(tmp_path, 1, 1, 1, 1, 1)
    with pytest.raises(ValueError, match="module top, which its Verilog has not"):
        Merged("top").add("one", NARROW.replace("module top(", "module other("), found)
    with pytest.raises(ValueError, match="line 15 does not stand in module top"):
        Merged("top").add("one", NARROW, [replace(count, line=count.line + 10) for count in found])


@pytest.mark.parametrize("suffix", ["A4_D10_W80", "pi1", "pi12"])
def test_a_module_with_parameters_is_found_by_its_name(tmp_path, suffix):
    found = narrow(tmp_path, 1, 1, 1, 1, 1)
    merged = Merged("top")
    merged.add("one", NARROW, [replace(count, module=f"{count.module}__{suffix}") for count in found])
    assert {point.module for point in merged.seen} == {"", "part"}


def test_a_module_whose_name_is_hashed_is_found_by_its_line(tmp_path):
    found = narrow(tmp_path, 1, 0, 1, 0, 1)
    plain, hashed = Merged("top"), Merged("top")
    plain.add("one", NARROW, found)
    hashed.add("one", NARROW, [replace(count, module=f"{count.module[:2]}__Vhsh0aB") for count in found])
    assert plain.seen == hashed.seen


def test_every_module_of_a_delivered_file_is_found():
    text = generator.kept(CONFIGS["tiny"], "dct").verilog
    found = modules(text)
    assert list(found) == ["cdu_dct", "cdu_dct__columns", "cdu_dct__rows", "cdu_dct__transposer"]
    for name, module in found.items():
        assert text.splitlines()[module.first_line - 1].startswith(f"module {name} (")
    assert f"cdu_alignment_buffer{RAM_MODULE}" in modules(generator.kept(CONFIGS["tiny"], "alignment_buffer").verilog)


# Waivers


def merged_example(tmp_path):
    """Return two uncovered toggles and a covered branch."""
    merged = Merged("top")
    merged.add("one", NARROW, narrow(tmp_path, 1, 0, 0, 1, 1))
    return merged


REASON = "It is constant."


@pytest.mark.parametrize(
    ("kind", "pattern", "points"),
    [
        ("toggle", r"x__y\[\d\].*", 2),
        ("toggle", r"x__y\[0\]:0->1", 1),
        ("toggle", r"x__y\[0\]", 0),
        ("branch", r".*cond_then", 0),
        ("line", r"x__y.*", 0),
        ("toggle", r"nosuch", 0),
    ],
)
def test_a_waiver_that_matches_no_uncovered_point_is_stale(tmp_path, kind, pattern, points):
    merged, waiver = merged_example(tmp_path), Waiver(("top",), kind, pattern, REASON)
    assert len(waivers.waived([waiver], "top", merged)) == points
    assert bool(waivers.stale([waiver], {"top": merged})) == (points == 0)
    assert not waivers.stale([waiver], {"another": merged})


def test_each_block_of_a_waiver_needs_a_point(tmp_path):
    covered = Merged("top")
    covered.add("one", NARROW, narrow(tmp_path, 1, 1, 1, 1, 1))
    waiver = Waiver(("top", "other"), "toggle", "x__y.*", REASON)
    (sentence,) = waivers.stale([waiver], {"top": merged_example(tmp_path), "other": covered})
    assert "in other matches no uncovered point" in sentence


def test_constants_are_those_of_every_run(tmp_path):
    """A bit that is constant in one parameter set only is not constant; a waiver of constants does not apply to others."""
    waiver = Waiver(("top",), "toggle", "x__y.*", REASON, constant=True)
    merged = Merged("top")
    merged.add("one", NARROW, narrow(tmp_path, 1, 0, 0, 1, 1))
    merged.mark_constant(0, {("", "x__y", 0), ("", "x__y", 1)})
    assert len(waivers.waived([waiver], "top", merged)) == 2
    merged.add("two", WIDE, wide(tmp_path, 1, 0, 1))
    merged.mark_constant(1, {("", "x__y", 1)})
    assert [point.text for point in waivers.waived([waiver], "top", merged)] == ["x__y[1]:1->0"]
    merged.add("three", NARROW, narrow(tmp_path, 1, 0, 0, 1, 1))
    assert len(waivers.stale([waiver], {"top": merged})) == 1


def test_constants_are_held_for_the_same_verilog(tmp_path, monkeypatch):
    file, design = tmp_path / "constants.json", "module top(input a, output [1:0] b); assign b = {1'b0, a}; endmodule"
    found = held_constant_bits(design, "top", file)
    assert found == {("", "b", 1)}
    monkeypatch.setattr("cdu_verif.coverage.constants.constant_bits", lambda verilog, top: {("", "other", 0)})
    assert held_constant_bits(design, "top", file) == found
    assert held_constant_bits(f"{design}\n", "top", file) == {("", "other", 0)}
    file.write_text("{")
    assert held_constant_bits(design, "top", file) == {("", "other", 0)}


def test_yosys_finds_constants():
    """Constants pass registers and instances; an input, and everything that depends on it, is none."""
    text = """
module top(clk, i, o, p);
  input clk; input [1:0] i; output [3:0] o; output [1:0] p;
  wire [1:0] p; wire clk; wire [1:0] i; reg [3:0] o = 4'h0; wire [3:0] wide;
  assign wide = {2'h0, i} << 1'h1;
  top__part part(.a(i[0]), .b(p));
  always @(posedge clk) o <= wide;
endmodule
module top__part(a, b);
  input a; output [1:0] b; wire a; wire [1:0] b;
  assign b = {a, 1'h1};
endmodule
"""
    found = constant_bits(text, "top")
    assert {("", "wide", 0), ("", "wide", 3), ("", "o", 0), ("", "o", 3), ("part", "b", 0)} <= found
    assert not found & {("", "wide", 1), ("", "o", 2), ("part", "b", 1), ("", "i", 0)}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kind": "branch", "constant": True}, "constant = True: use true, for toggles"),
        ({"constant": "yes"}, "constant = 'yes': use true"),
        ({"reason": ""}, "the reason is no sentence"),
        ({"reason": "untested"}, "the reason is no sentence"),
        ({"kind": "togle"}, "unknown kind 'togle'"),
        ({"blocks": ["dtc"]}, "unknown block 'dtc'"),
        ({"blocks": []}, "no list of names"),
        ({"pattern": "("}, "no regular expression"),
        ({"until": "later"}, "give blocks, kind, pattern and reason"),
    ],
)
def test_wrong_waivers_are_refused(tmp_path, change, message):
    fields = {"blocks": ["dct"], "kind": "toggle", "pattern": "x", "reason": REASON, **change}
    file = tmp_path / "waivers.toml"
    file.write_text("[[waiver]]\n" + "".join(f"{name} = {json.dumps(value)}\n" for name, value in fields.items()))
    with pytest.raises(UserError, match=message):
        waivers.read(file, ("dct",))


def test_the_waivers_of_the_project_are_read():
    assert all(one.reason for one in waivers.read())


# Stages

DONE = Facts((), (), True, (), (), (), True, dict.fromkeys(coverage.KINDS, 95.0), 95.0)


@pytest.mark.parametrize(
    ("change", "reached", "missing"),
    [
        ({}, "V3", ""),
        ({"failing": ("dct",)}, "V0", "fails: dct"),
        ({"warned": ("a", "b", "c", "d")}, "V0", "lint: 4, such as a"),
        ({"smoke": False}, "V0", "no test in Amaranth"),
        ({"smoke": None}, "V3", ""),
        ({"missing_sets": ("dct[dct_stages=1]",)}, "V1", "not run: dct"),
        ({"missing_bins": ("cp_x: one",)}, "V1", "bins: cp_x: one"),
        ({"unproven": ("hold",)}, "V1", "not proven: hold"),
        ({"proves_function": False}, "V1", "no property of order or arithmetic"),
        ({"percent": {"line": 100.0, "toggle": 94.99}}, "V2", "coverage: toggle"),
        ({"killed": 94.9}, "V2", "94.9 % killed"),
        ({"killed": None}, "V2", "not measured"),
    ],
)
def test_each_rule_holds_a_stage_back(change, reached, missing):
    stage, found = sign_off.stage(replace(DONE, **change))
    assert stage == reached
    assert missing in "; ".join(found)
    assert bool(found) == bool(missing)


def test_mutants_are_read_of_either_file(tmp_path):
    header = "block,mutant,mode,cell,line,outcome,test\n"
    outcomes = ["dct,1,,,,killed,t", "dct,2,,,,survived,", "dct,3,,,,equivalent,", "idct,1,,,,equivalent,"]
    file = tmp_path / "mutants.csv"
    file.write_text(header + "\n".join(outcomes))
    assert evidence.killed(file) == {"dct": 50.0, "idct": 100.0}
    report = tmp_path / "report.json"
    report.write_text(json.dumps({"blocks": [{"block": "dct", "percent": 97.5}]}))
    assert evidence.killed(report) == {"dct": 97.5}
    file.write_text(header + "dct,1,,,,lost,")
    with pytest.raises(UserError, match="no report of `cdu mutate`: a mutant is 'lost'"):
        evidence.killed(file)
    for text in ("", "something else", "block,result\ndct,killed"):
        file.write_text(text)
        with pytest.raises(UserError, match="no columns block and outcome"):
            evidence.killed(file)


def test_branches_of_python(tmp_path):
    def part(statements, lines, branches, taken):
        names = ("num_statements", "covered_lines", "num_branches", "covered_branches")
        return {"summary": dict(zip(names, (statements, lines, branches, taken), strict=True))}

    files = {f"sw/actcodec/{name}/a.py": part(10, 9, 4, 1) for name in ("golden", "codecs", "training", "saved", "policies")}
    content = {"meta": {"branch_coverage": True}, "files": {**files, "sw/actcodec/golden/b.py": part(10, 10, 0, 0)}}
    file = tmp_path / "python.json"
    file.write_text(json.dumps(content))
    table = evidence.python_table(file)
    assert table.rows[0] == ("actcodec.golden", "20", "95.0", "4", "25.0", "83.3")
    assert table.rows[-1] == ("all", "60", "91.6", "20", "25.0", "75.0")
    del content["files"]["sw/actcodec/saved/a.py"]
    file.write_text(json.dumps(content))
    with pytest.raises(UserError, match=r"nothing of actcodec\.saved"):
        evidence.python_table(file)
    content["meta"]["branch_coverage"] = False
    file.write_text(json.dumps(content))
    with pytest.raises(UserError, match="branches were not counted"):
        evidence.python_table(file)


def test_a_share_is_whole_only_when_nothing_is_missing():
    assert [evidence.share(*pair) for pair in ((9999, 10000), (1, 1), (0, 3), (0, 0))] == ["99.9", "100.0", "0.0", "-"]


# The command


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Run a regression of the shift quantiser with coverage and return its folder."""
    place = tmp_path_factory.mktemp("regression")
    command = ["verify", "--block", "shift_quantizer", "--test", "corners/pattern=full_rate", "--coverage", "-o", str(place)]
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 0, done.output
    return place


def page_of(tmp_path, proofs=()):
    """Return a table of proofs of the shift quantiser and a page with marks."""
    header = ("block", "property", "statement", "method", "holds", "s", "result", "command")
    rows = [("shift_quantizer", name, "s", "PDR (ABC)", "unbounded", "1", result, "c") for name, result in proofs]
    table, page = tmp_path / "proofs.csv", tmp_path / "coverage.md"
    table.write_text(Table(header, rows).csv())
    page.write_text(f"before\n{cover_report.MARKS.begin}\n{cover_report.MARKS.end}\nafter\n")
    return table, page


def test_the_page_counts_the_blocks_of_its_table():
    evidence = Path(__file__).parents[3] / "docs" / "evidence"
    rows = list(csv.DictReader((evidence / cover_report.BLOCK_FILE).read_text("utf-8").splitlines()))
    stages = {row["block"]: (row["stage"], row["missing for the next stage"].replace("nothing", "")) for row in rows}
    page = cover_report.MARKS.parts(evidence / "coverage.md")[1]
    assert cover_report.stage_table(stages).markdown() in page
    assert sign_off.rules() in page


@pytest.mark.campaign
def test_the_page_says_what_was_reached(folder, tmp_path):
    proofs = [(name, "proven") for name in ("hold", "independence", "unasked", "progress_o", "arithmetic")]
    page, table = page_of(tmp_path, proofs)
    tests = tmp_path / "tests"
    tests.mkdir()
    (tests / "test_x.py").write_text(
        "from cdu_verif.benches.in_amaranth import assert_passes\nassert_passes('shift_quantizer')\n"
    )
    command = [
        "coverage",
        str(folder),
        "--proofs",
        str(page),
        "--tests",
        str(tests),
        "--table",
        str(table),
        "-o",
        str(tmp_path / "o"),
    ]
    done = CliRunner().invoke(app, command)
    content = json.loads((tmp_path / "o" / "report.json").read_text())
    block = content["blocks"]["shift_quantizer"]
    assert len(block["runs"]) == len(plan.runs(CduConfig(), ["shift_quantizer"], full=False)) == 2
    assert block["stage"] == "V2", block
    assert block["coverage"]["line"] == {"points": 26, "hit": 26, "waived": 0, "percent": 100.0}
    assert block["coverage"]["expression"]["hit"] < block["coverage"]["expression"]["points"]
    text = table.read_text()
    assert text.startswith("before\n")
    assert text.endswith("\nafter\n")
    assert re.search(r"^\| V2 \| 1 \| .*mutants: not measured \| shift_quantizer \|$", text, re.MULTILINE)
    (row,) = csv.DictReader((tmp_path / "coverage_blocks.csv").read_text().splitlines())
    assert (row["block"], row["stage"], row["% of mutants killed"]) == ("shift_quantizer", "V2", "not measured")
    assert (row["line points"], row["line %"], row["line % before waivers"]) == ("26", "100.0", "100.0")
    assert float(row["expression %"]) > float(row["expression % before waivers"])
    (header, *waived) = csv.reader((tmp_path / "coverage_waivers.csv").read_text().splitlines())
    assert header == ["blocks", "kind", "points", "reason"]
    assert any("shift_quantizer" in blocks and int(points) > 0 for blocks, _, points, _ in waived)
    assert not (tmp_path / "coverage_uncovered.csv").exists()
    rows = (tmp_path / "o" / "coverage_uncovered.csv").read_text().splitlines()
    assert rows[0] == "block,kind,module,point,bits,points,first run,line,waiver"
    assert all(row.startswith("shift_quantizer,") for row in rows[1:])
    assert done.exit_code == bool(content["stale_waivers"])
    # One proof less, and one that failed.
    for fewer in (proofs[1:], [("hold", "NOT PROVEN"), *proofs[1:]]):
        page_of(tmp_path, fewer)
        CliRunner().invoke(app, command)
        block = json.loads((tmp_path / "o" / "report.json").read_text())["blocks"]["shift_quantizer"]
        assert (block["stage"], block["missing"]) == ("V1", ["not proven: hold"])


def test_a_test_that_fails_or_a_bin_that_is_missing_is_seen(folder, tmp_path):
    content = json.loads((folder / "report.json").read_text())
    copy = tmp_path / "copy"
    copy.mkdir()
    (copy / "runs").symlink_to(folder / "runs")
    content["results"][0]["status"] = "FAIL"
    content["results"][1]["covered"] = {"cp_x": ["one"]}
    for run in content["runs"]:
        run["bins"] = {"cp_x": ["one", "two"]}
    (copy / "report.json").write_text(json.dumps(content))
    block = verify_folder.read(copy, Silent()).blocks["shift_quantizer"]
    assert block.failing == [content["results"][0]["group"]]
    assert (block.bins, block.missing_bins) == (2, ["cp_x: two"])
    assert not block.warned


def test_a_regression_without_counts_is_refused(folder, tmp_path):
    (tmp_path / "report.json").write_text((folder / "report.json").read_text())
    with pytest.raises(UserError, match="run `cdu verify --coverage`"):
        verify_folder.read(tmp_path, Silent())


def test_bits_of_one_signal_stand_in_one_row(tmp_path):
    merged = merged_example(tmp_path)
    rows = cover_report.uncovered_points([cover_report.Covered(VerifiedBlock("top", merged), {})]).rows
    assert [row[:6] for row in rows] == [("top", "toggle", "", "x__y", "0-1", "2")]
    # Points of a whole unit are not listed again
    assert not cover_report.uncovered_points([cover_report.Covered(VerifiedBlock("array", merged), {})]).rows
