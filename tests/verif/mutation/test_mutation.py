"""Mutants: the design among them is the design, faults are found, and what changes nothing is told apart."""

from __future__ import annotations

import csv
import json
import re
from collections import Counter
from pathlib import Path

import pytest
from cdu.delivery import generator
from cdu_cli.main import app
from cdu_spec.config import CONFIGS
from cdu_tools.errors import UserError
from cdu_verif.formal.device import BoundDevice
from cdu_verif.formal.properties import block_device
from cdu_verif.mutation import campaign, miter, mutants, mutate_blocks
from cdu_verif.mutation.mutants import Mutant
from tools_here import needs_provers
from typer.testing import CliRunner

TINY = CONFIGS["tiny"]


@pytest.fixture
def netlist(tmp_path):
    """The folder with the flat netlist of the shift quantiser, and its mutants."""
    generated = generator.kept(TINY, "shift_quantizer")
    generated.write(tmp_path)
    chosen = mutants.choose(tmp_path / "shift_quantizer.v", generated.top, tmp_path, 16, seed=1)
    return tmp_path, chosen


def test_mutants_are_spread_and_follow_the_seed(netlist, tmp_path):
    """As many as are asked for, all different, the same for the same seed and others for another."""
    folder, chosen = netlist
    again, others = (mutants.choose(folder / "shift_quantizer.v", "cdu_shift_quantizer", tmp_path, 16, seed) for seed in (1, 2))
    assert [mutant.number for mutant in chosen] == list(range(1, 17))
    assert len({mutant.options for mutant in chosen}) == 16
    assert again == chosen != others
    assert all(mutant.mode and mutant.line.startswith("shift_quantizer.v:") for mutant in chosen)


@pytest.mark.parametrize("seed", [1, 2])
def test_unread_bits_are_no_place_for_a_fault(netlist, tmp_path, seed):
    folder, _ = netlist
    chosen = mutants.choose(folder / "shift_quantizer.v", "cdu_shift_quantizer", tmp_path, 200, seed)
    assert "-wire unused_" in (tmp_path / "mutants.txt").read_text()
    assert len(chosen) == 200
    assert not any("unused_" in mutant.options for mutant in chosen)


def test_the_first_content_of_a_memory_is_no_place_for_a_fault(tmp_path):
    generated = generator.kept(TINY, "alignment_buffer")
    generated.write(tmp_path)
    chosen = mutants.choose(tmp_path / "alignment_buffer.v", generated.top, tmp_path, 40, seed=1)
    assert "$meminit" in (tmp_path / "mutants.txt").read_text()
    assert [mutant.number for mutant in chosen] == list(range(1, len(chosen) + 1))
    assert len(chosen) == 40
    mutants.selectable(chosen, generated.manifest["ports"], generated.top, tmp_path)


@needs_provers
def test_what_changes_nothing_is_equivalent(netlist):
    """A mutation of no effect is shown to be none; an inverted output of a register is not."""
    folder, chosen = netlist
    device = block_device("shift_quantizer", TINY)
    harmful = next(mutant for mutant in chosen if mutant.mode == "inv")
    assert not mutants.equivalent(harmful, device, "", folder)
    harmless = Mutant(0, harmful.options.replace("-mode inv", "-mode none"))
    assert mutants.equivalent(harmless, device, "", folder)


@needs_provers
def test_a_search_that_does_not_end_shows_nothing(netlist, monkeypatch):
    folder, chosen = netlist
    harmless = Mutant(0, chosen[0].options.replace(f"-mode {chosen[0].mode}", "-mode none"))
    monkeypatch.setattr(miter, "_LONGEST", 1e-3)
    assert not mutants.equivalent(harmless, block_device("shift_quantizer", TINY), "", folder)


@pytest.mark.campaign
@needs_provers
def test_proofs_find_faults(netlist):
    """A proof about the block has a counterexample to an inverted bit, and none to a mutation of no effect."""
    folder, chosen = netlist
    harmful = next(mutant for mutant in chosen if mutant.mode == "inv")
    assert campaign.refuted_proof(harmful, "shift_quantizer", TINY, folder)
    harmless = Mutant(0, harmful.options.replace("-mode inv", "-mode none"))
    assert not campaign.refuted_proof(harmless, "shift_quantizer", TINY, folder)


#: A memory, and a counter with dead bits behind it that never gets as far as its last number.
DEVICE = """\
module top(input clk, input rst, input i__payload, input i__valid, output reg o__valid, output o__payload);
  reg kept [1:0];
  reg [1:0] place = 0;
  wire wraps = place > 1;
  always @(posedge clk) begin
    if (i__valid) kept[place[0]] <= i__payload[0];
    place <= rst | wraps ? 0 : place + 1;
    o__valid <= !rst;
  end
  assign o__payload = kept[0] | (place == 3);
endmodule
"""


def _port(name, width, direction, stream=None):
    role = {"stream": {"name": name[0], "role": name[3:], "direction": direction}} if stream else {}
    return {"name": name, "width": width, "direction": direction, **role}


@needs_provers
def test_judged_is_what_can_be_seen(tmp_path):
    """A fault in a bit that leads nowhere, in a state that is not reached, or in what no promised input shows, is none; one in
    a clock is one.
    """
    (tmp_path / "top.v").write_text(DEVICE)
    netlists = tmp_path / "netlists"
    netlists.mkdir()
    ports = [_port("clk", 1, "input"), _port("rst", 1, "input"), _port("i__payload", 1, "input", "i")]
    ports += [_port("i__valid", 1, "input", "i"), _port("o__valid", 1, "output", "o"), _port("o__payload", 1, "output", "o")]
    device = BoundDevice("top", DEVICE, tuple(ports))
    chosen = mutants.choose(tmp_path / "top.v", "top", netlists, 2000, seed=1)

    def fault(cell, port, mode):
        return next(one for one in chosen if cell in one.place and one.place.endswith(f" {port}") and one.mode == mode)

    assert mutants.equivalent(fault("$add", "Y[29]", "inv"), device, "", netlists)
    assert mutants.equivalent(fault("$eq", "Y[0]", "const0"), device, "", netlists)
    assert not mutants.equivalent(fault("$eq", "Y[0]", "const1"), device, "", netlists)
    written = fault("memwr", "DATA[0]", "inv")
    assert not mutants.equivalent(written, device, "", netlists)
    assert mutants.equivalent(written, device, "  always @* assume (!i__valid);", netlists)
    assert not mutants.equivalent(fault("$procdff", "CLK[0]", "const0"), device, "", netlists)


def test_benches_find_faults(tmp_path):
    """The unchanged design passes (or there would be an error), inverted bits are found, and the report says by which test."""
    command = ["mutate", "--block", "shift_quantizer", "--mutants", "3", "-o", str(tmp_path / "mutants")]
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 0, done.output
    (block,) = json.loads((tmp_path / "mutants" / "report.json").read_text())["blocks"]
    assert block["mutants"] == 3
    assert block["killed"] + block["equivalent"] == 3
    rows = (tmp_path / "mutants" / "mutants.csv").read_text().splitlines()
    assert rows[0] == "block,mutant,mode,cell,line,outcome,test"
    assert all(row.split(",")[-1] for row in rows[1:] if ",killed," in row)


def test_a_table_keeps_what_is_not_tried(tmp_path):
    """Rows of one block are put in place of its old ones, in the order of the blocks; another file is refused and kept."""
    table = tmp_path / "mutants.csv"
    scores = [campaign.Score(block, (campaign.Fate(Mutant(1, f"-mode {mode}"), "killed", "t"),)) for block, mode in SCORES]
    for score in scores:
        table.write_text(mutate_blocks._merged(table, score).csv())
    rows = [line.split(",")[:3] for line in table.read_text().splitlines()[1:]]
    assert rows == [["sfpr", "1", "inv"], ["dct", "1", "const1"], ["idct", "1", "inv"]]
    table.write_text("a,b\n")
    with pytest.raises(UserError, match="is no table of mutants: use a file that `cdu mutate` has written"):
        mutate_blocks._merged(table, scores[0])


SCORES = (("dct", "inv"), ("idct", "inv"), ("sfpr", "inv"), ("dct", "const1"))


def test_the_page_counts_the_rows_of_its_table():
    evidence = Path(__file__).parents[3] / "docs" / "evidence"
    text = (evidence / "verification.md").read_text("utf-8")
    told = re.search(
        r"\*\*(\d+) of (\d+) mutants in (\d+) blocks are killed\*\* \(([\d.]+) %\); (\d+) more .*, and (\d+) blocks have no",
        text,
    )
    assert told
    with (evidence / "mutants.csv").open(encoding="utf-8") as table:
        rows = [(row["block"], row["outcome"]) for row in csv.DictReader(table)]
    outcomes, survivors = Counter(outcome for _, outcome in rows), {block for block, outcome in rows if outcome == "survived"}
    killed, blocks = outcomes["killed"], {block for block, _ in rows}
    real = killed + outcomes["survived"]
    counts = (killed, real, len(blocks), f"{100 * killed / real:.1f}", outcomes["equivalent"], len(blocks - survivors))
    assert told.groups() == tuple(map(str, counts))
    assert f"The {outcomes['survived']} that survive:" in text


def test_score_leaves_out_equivalent_mutants():
    """Percent of those that can be found."""
    fates = [campaign.Fate(Mutant(1, ""), outcome) for outcome in ("killed", "killed", "killed", "survived", "equivalent")]
    assert campaign.Score("dct", tuple(fates)).percent == 75.0
    assert campaign.Score("dct", tuple(fates[-1:])).percent == 100.0


def test_unknown_block_is_refused(tmp_path):
    """One sentence, and nothing is written."""
    done = CliRunner().invoke(app, ["mutate", "--block", "dtc", "-o", str(tmp_path / "out")])
    assert done.exit_code
    assert not (tmp_path / "out").exists()
