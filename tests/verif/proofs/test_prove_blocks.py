"""Proofs of small blocks, and faulty Verilog that every kind of proof must reject."""

import csv
import json
import re
import struct
import subprocess
import xml.etree.ElementTree as ET
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest
import torch
from actcodec.golden import sfpr as golden
from cdu_spec.config import CduConfig
from cdu_spec.config_rules import ConfigError
from cdu_tools import verilator
from cdu_tools.errors import UserError
from cdu_verif.formal import affine, axi, binding, properties, sfpr, solver
from cdu_verif.formal.proof import Verdict, prove
from cdu_verif.proofs import campaign, catalog
from cdu_verif.proofs.prove_blocks import ProofSettings
from tools_here import needs_provers


def _property(block, name, bounded=None):
    one = next(one for one in catalog.properties(CduConfig(), [block]) if one.name == name)
    return replace(one, method=replace(one.method, kind=solver.BOUNDED, depth=bounded)) if bounded else one


def _changed(pattern, replacement):
    def mutate(text):
        faulty, count = re.subn(pattern, replacement, text, count=1)
        assert count == 1, f"nothing matches {pattern}"
        return faulty

    return mutate


@pytest.mark.parametrize(
    "given",
    [
        *({"coders": ("gmc",)}, {"coders": ("zvc", "gmc"), "cdus": 2}, {"modes": ("brc",)}, {"modes": ("sfpr", "mx")}),
        *({"value_port_bits": 2048, "cdus": 8}, {"value_format": "fp16", "value_port_bits": 128}, {"reciprocal_bits": 16}),
        *({"completions": 8}, {"own_clocks": ("values",), "reset_kind": "async"}, {"dma_bits": 64, "dma_words": 512}),
    ],
    ids=str,
)
def test_every_configuration_has_properties_of_all_blocks(given):
    of_default, found = (catalog.properties(config) for config in (CduConfig(), CduConfig(**given)))
    assert {one.block.partition("[")[0] for one in found} == {one.block.partition("[")[0] for one in of_default}


def test_a_block_without_proofs_is_named(tmp_path):
    with pytest.raises(ConfigError, match="nothing to prove: dma_array has no proofs itself; use cdu verify, or its parts"):
        ProofSettings(CduConfig(), tmp_path, ["dma_array"])


@needs_provers
@pytest.mark.parametrize("name", ["hold", "independence", "unasked"])
def test_stream_rules_are_proven(tmp_path, name):
    assert prove(_property("shift_quantizer", name), tmp_path).proven


@needs_provers
def test_widths_of_the_transform_are_proven(tmp_path):
    assert prove(_property("dct", "widths"), tmp_path).proven


#: Block, property, depth where the proof is cut short, and what is changed in the Verilog.
FAULTS = [
    # valid falls while it waits
    ("shift_quantizer", "hold", None, r"else if \(i__ready\) (o__valid <= )", r"else \1"),
    # payload changes while it waits
    ("shift_quantizer", "hold", None, r"if \(i__ready\) (q0 <= )", r"if (i__valid) \1"),
    # valid waits for ready
    ("shift_quantizer", "independence", None, r"assign i__ready = [^;]*;", "assign i__ready = o__ready;"),
    # two values of a column change places
    ("transposer", "order", 12, r"upwards \? cell01 :", "upwards ? cell11 :"),
    # a tie is not rounded to even
    ("sfpr", "arithmetic", 6, r"(assign magnitude0 = [^;]*) \+ [^;]*;", r"\1;"),
    # a count of zeros does not move on with its row
    ("inverse_sfpr", "arithmetic", 6, r"(lane0_zeros2 <= )lane0_zeros1", r"\1~lane0_zeros1"),
    # an exponent is that of another row
    ("inverse_sfpr", "arithmetic", 6, r"(biased0 = \w+ - \{ 5'h00, )lane0_zeros2", r"\1lane0_zeros1"),
    # one coefficient has the wrong sign
    ("dct", "widths", None, r"(assign even0_x3 = [^;]*) \+ ", r"\1 - "),
    # both directions use it
    ("two_way_dct", "widths", None, r"(assign even0_x3 = [^;]*) \+ ", r"\1 - "),
    ("two_way_dct", "inverse_widths", None, r"(assign even0_x3 = [^;]*) \+ ", r"\1 - "),
    # a shift is one too large
    ("shift_quantizer", "arithmetic", 4, r"(assign biased0 = )[^;]*;", r"\g<1>13'h0;"),
    # the turn goes on with every word instead of every block
    ("distributor", "order", None, r"(assign _\d+_ = _\d+_ & )i__payload\[130\];", r"\g<1>1'h1;"),
    # a job's last word has a wrong count when it is what was left over
    ("collector", "order", None, r"(flush \? \{ 1'h0, )spilled_count", r"\1~spilled_count"),
    # a word leaves no trace in the window
    ("splitter", "order", 5, r"(assign \w+ = kept\d+) \| (fresh\d+;)", r"\1 & \2"),
    # nothing happens when the time is over
    ("channel_control", "watchdog", None, r"(assign _\d+_ = )expired & ", r"\g<1>1'h0 & "),
    # the upper half of a counter hears of no carry
    ("control", "compress_counters", None, r"(values_upper \+ )\{ 31'h0+, values_carry \};", r"\g<1>32'd0;"),
    # a register shows the upper half of another counter
    ("control", "compress_counters", None, r"(values_was_read \? )values_upper", r"\1bytes_upper"),
    # a dividend is rounded down
    ("div_quantizer", "arithmetic", None, r"(dividend3 <= \w+);", r"\1 & 12'hffe;"),
    # products of 2048 to 4095 are not limited
    ("inverse_div_quantizer", "arithmetic", None, r"(= \| product3\[19:)11\];", r"\g<1>12];"),
    # the first two values of a row have one place
    ("zvc_encoder", "content", None, r"(assign rank2 = \{ 1'h0, chosen\[0\] \}) \+", r"\1 |"),
    # the last value of a row is not counted
    ("zvc_decoder", "content", None, r"(assign count = [^;]*) \+ \{ 3'h0, present\[7\] \};", r"\1;"),
    # codes of 4 bits of a row change places
    ("affine_encoder", "codes", 8, r"kept\[11:8\], kept\[3:0\] \}", "kept[3:0], kept[11:8] }"),
    # a row takes the bytes of the row before
    ("affine_decoder", "codes", 6, r"assign row_bytes = (\w+) \? (\w+) : (\w+);", r"assign row_bytes = \1 ? \3 : \2;"),
    # a word has the tag of the word behind it
    ("value_front", "jobs", 14, r"(tag3 <= )tag2", r"\1tag1"),
    # a job ends a word too early
    ("value_back", "jobs", 14, r"(last0_3 <= )last0_2", r"\1last0_1"),
    # a row of 9 to 16 blocks is told to end with its second tile
    ("value_front", "counts", None, r"(= left > 26'h)0000008;", r"\g<1>0000010;"),
    # a borrow is one too much for the upper half of what is left of a row
    ("value_back", "counts", None, r"(= rest\[28:15\] \+ 14'h3)fff;", r"\g<1>ffe;"),
    # the third byte of a piece is stuffed behind 254
    ("entropy_encoder", "segment", 20, r"(assign marks\[2\] = [^;]*)8'hff", r"\g<1>8'hfe"),
    # the mark of a scan's end changes within a block
    ("entropy_decoder", "blocks", None, r"if \(_\d+_\) (last <= i__payload\[20\];)", r"\1"),
    # the bytes of codes are rounded down
    ("code_packing", "inverse", None, r"(count \} \+ )5'h04", r"\g<1>5'h03"),
    # a step is rounded down
    ("range_finder", "step", None, r"leading \+ 8'h01", "leading"),
    # the highest bit of an exponent is lost
    ("affine_dequantizer", "arithmetic_0123", 4, r"(product0 \} << )exponent1;", r"\1exponent1[2:0];"),
    # a block enters though there is no room for its range
    ("range_store", "hold", None, r"used != 4'h8", "1'h1"),
    # the end of a job is told though an abort has cut it
    ("axi_sender", "ends", 6, r"assign ended = (_\d+_) & _\d+_;", r"assign ended = \1;"),
    # a word is taken though there is no room for it
    ("axi_receiver", "order", 8, r"assign tready = _\d+_ \| flushing;", "assign tready = 1'h1;"),
    # scales of the registers are taken whatever the job's source
    ("scale_join", "order", 8, r"(assign written__ready = )_\d+_ & o__ready;", r"\1o__ready;"),
    # a job's end is lost where its last word is full
    ("byte_packer", "order", 8, r"(assign o__payload__last = over \| )ends;", r"\g<1>1'h0;"),
    # every word of a lane ends its block
    ("gatherer", "order", 8, r"(assign o__payload__ends = turn \? )\w+\[130\]", r"\g<1>1'h1"),
    # a pointer crosses in binary
    ("clock_crossing", "order", None, r"assign (\w+) = produce_w_nxt \^ [^;]*;", r"assign \1 = produce_w_nxt;"),
    # a word is written though there is no room
    ("clock_crossing", "order", None, r"assign w_full = [^;]*;", "assign w_full = 1'h0;"),
    # a burst that ends before the next boundary has no last word
    ("burst_former", "words", 8, r"\{ closes, i__payload\[111:40\] \}", "i__payload[112:40]"),
    # the words of a request are taken from the other writer
    ("axi_write_master", "turns", 16, r"\.w_data\(chosen\)", ".w_data(~chosen)"),
    # TAIL is not compared with HEAD
    ("descriptor_fetch", "rung", None, r"= given <= \{ 15'h0000, places \}", "= 1'h1"),
    # TAIL is not compared with the next descriptor
    ("descriptor_fetch", "rung", None, r"= waiting <= \{ 15'h0000, places \}", "= 1'h1"),
    # a place beyond the last address is read at the first one
    ("descriptor_fetch", "rung", None, r"= ~ address\[40\]", "= 1'h1"),
    # a burst goes on behind a boundary of 4 KiB
    ("segment_cutter", "cuts", None, r"assign limit = _\d+_ \? _\d+_\[4:0\] : 5'h10;", "assign limit = 5'h10;"),
    # every part of a segment has the padding behind it
    ("segment_cutter", "cuts", None, r"(parts__payload__pad = )whole \? pad : 10'h000;", r"\1pad;"),
    # the high bits of the rest of a segment are not looked at
    ("memory_writer", "places", None, r"(assign _\d+_ = )\| segments__payload\[71:44\];", r"\g<1>1'h0;"),
    # the end of a record is not looked at
    ("job_planner", "places", None, r"(i__payload\[679:640\] \} \+ 41'h0000000002)0", r"\g<1>0 - 41'h20"),
    # output waits for more input
    ("shift_quantizer", "progress_o", 8, r"(o__valid <= )i__valid;", r"\g<1>1'h0;"),
]


#: Every third fault is planted in every run of the tests, the others in campaigns.
PLANTED = [pytest.param(*fault, marks=() if place % 3 == 0 else pytest.mark.campaign) for place, fault in enumerate(FAULTS)]


@needs_provers
@pytest.mark.parametrize(("block", "name", "bounded", "pattern", "replacement"), PLANTED)
def test_a_fault_is_found(tmp_path, block, name, bounded, pattern, replacement):
    mutate = _changed(pattern, replacement)
    if name == "independence":
        # The register is bypassed: what was its input becomes the output.
        def mutate(text):
            register = r"always @\(posedge clk\)\s*if \(rst\) o__valid <= [^;]*;\s*else [^;]*o__valid <= [^;]*;\n"
            begins = r"    o__valid = 1'h0;\n"
            port = _changed(r"(output) reg +(o__valid)([\s\S]*?\n\);\n)", r"\1 wire \2\3assign \2 = i__valid & o__ready;\n")
            return port(_changed(begins, "")(_changed(register, "")(text)))

    verdict = prove(_property(block, name, bounded), tmp_path, mutate)
    assert not verdict.proven
    assert verdict.message
    if isinstance(_property(block, name).method, solver.Sby):
        assert verdict.message.startswith(("violated", "the induction step fails")), verdict.message
        assert re.search(r": harness\.[\w.\[\]]+\.[a-z]\w*", verdict.message), verdict.message
        assert verdict.trace
        assert verdict.trace.read_text().startswith("$")


EVIDENCE = Path(__file__).parents[3] / "docs" / "evidence"


def test_what_faults_are_found_by_is_proven_without_them():
    proven = campaign.proven(EVIDENCE / campaign.TABLE)
    assert {(block, name) for block, name, *_ in FAULTS} - proven == set()


def test_the_page_counts_the_rows_of_its_table():
    (_, *rows) = csv.reader((EVIDENCE / campaign.TABLE).read_text("utf-8").splitlines())
    assert campaign.MARKS.parts(EVIDENCE / "formal.md")[1] == f"\n{campaign.summary(rows)}\n"


def test_the_channels_of_axi_ports_are_streams():
    sent = {stream.name: stream for stream in properties.block_device("control", CduConfig()).streams if not stream.received}
    assert {"s_axil_b", "s_axil_r", "compress__job", "decompress__scales"} <= set(sent)
    assert sent["s_axil_r"].signal("payload") == "{s_axil_rdata, s_axil_rresp}"
    assert sent["s_axil_r"].width == 34
    ports = {"tdata": (False, 16), "tkeep": (False, 2), "tlast": (False, 1), "tvalid": (False, 1), "tready": (True, 1)}
    name, received, width, signals = next(axi.channels({f"m_axis_{name}": port for name, port in ports.items()}))
    assert (name, received, width) == ("m_axis", False, 19)
    assert signals["payload"] == "{m_axis_tdata, m_axis_tkeep, m_axis_tlast}"
    assert not list(axi.channels({"m_axis_tvalid": (False, 1), "valid": (False, 1), "ready": (True, 1)}))


def test_a_word_that_is_too_narrow_is_found():
    symbol = affine.Symbol("x", -4, 3)
    adder = {
        "type": "$add",
        "parameters": {"A_SIGNED": "1", "B_SIGNED": "1"},
        "port_directions": {"A": "input", "B": "input", "Y": "output"},
        "connections": {"A": [2, 3, 4], "B": [2, 3, 4], "Y": [5, 6, 7, 8]},
    }
    word = affine.AffineWord(affine.AffineForm.of(symbol), symbol.low, symbol.high)
    path = affine.AffinePath({"cells": {"adder": adder}}, [([2, 3, 4], word)])
    double = path.read([5, 6, 7, 8])
    assert (double.low, double.high) == (-8, 6)
    assert double.form.terms == {symbol: Fraction(2)}
    with pytest.raises(affine.AnalysisError, match="-8 to 6 in 3 bits"):
        path.read([5, 6, 7])


_SFPR_DTYPES = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32}
_SFPR_VALUES = 4000


def _sfpr_bench(value_format, folder):
    """A Verilog module that prints what the reference gives for many values of a format, and what the golden function gives."""
    config = CduConfig(value_format=value_format, scale_bits=8)
    bits, count = config.dtype.bits, _SFPR_VALUES
    patterns = torch.randint(0, 1 << bits, (count,), generator=torch.Generator().manual_seed(1))
    signed = torch.where(patterns >> (bits - 1) == 1, patterns - (1 << bits), patterns)
    x = signed.to(torch.int32 if bits == 32 else torch.int16).view(_SFPR_DTYPES[value_format])
    # Multipliers that bring most values near the range, and some of all sizes.
    exponents = torch.where(torch.arange(count) % 4 == 0, torch.arange(count) % 240 - 120, 0)
    near = (6 - torch.frexp(x.to(torch.float32).nan_to_num(1, 1, 1)).exponent).clamp(-120, 119)
    exponents = torch.where(exponents == 0, near, exponents)
    k = torch.ldexp(1 + torch.arange(count) * 37 % 128 / 128, exponents).to(torch.float32)
    scales = [struct.unpack("<I", struct.pack("<f", value))[0] for value in k.tolist()]
    (folder / f"x_{value_format}.hex").write_text("\n".join(f"{value:x}" for value in patterns.tolist()))
    (folder / f"k_{value_format}.hex").write_text("\n".join(f"{value:x}" for value in scales))
    parameters = ", ".join(f".{name}({value})" for name, value in sfpr.reference_parameters(config).items())
    text = f"""
module {value_format};
  reg [{bits - 1}:0] x [0:{count - 1}];
  reg [31:0] k [0:{count - 1}];
  reg [{bits - 1}:0] one_x;
  reg [31:0] one_k;
  wire signed [7:0] q;
  sfpr_reference #({parameters}) reference (.x(one_x), .k(one_k), .q(q));
  initial begin
    $readmemh("x_{value_format}.hex", x);
    $readmemh("k_{value_format}.hex", k);
    for (int n = 0; n < {count}; n++) begin
      one_x = x[n];
      one_k = k[n];
      #1 $display("{value_format} %0d", q);
    end
  end
endmodule
"""
    return text, golden.sfpr(x, k).tolist()


def test_the_reference_of_sfpr_is_the_golden_function(tmp_path):
    benches = {name: _sfpr_bench(name, tmp_path) for name in _SFPR_DTYPES}
    top = f"module bench; {' '.join(f'{name} {name}_values ();' for name in benches)} endmodule"
    (tmp_path / "bench.sv").write_text("".join(text for text, _ in benches.values()) + top)
    (reference,) = (source for source in binding.sources() if source.stem == "sfpr_reference")
    tool = verilator.find()
    options = ["--binary", "--timing", "-CFLAGS", "-std=gnu++20", "-Wno-fatal", "-Wno-lint", "--top-module", "bench"]
    command = [str(tool.program), *options, "-Mdir", "built", "-o", "bench", "bench.sv", str(reference)]
    subprocess.run(command, cwd=tmp_path, env=tool.environment, check=True, capture_output=True)
    done = subprocess.run(["built/bench"], cwd=tmp_path, check=True, capture_output=True, text=True)
    for name, (_, expected) in benches.items():
        assert [int(line.split()[1]) for line in done.stdout.splitlines() if line.startswith(f"{name} ")] == expected
        assert len(set(expected)) > 200


@needs_provers
def test_reports_name_the_counterexample(tmp_path):
    good, bad = _property("shift_quantizer", "hold"), _property("shift_quantizer", "unasked")
    late = replace(bad, method=replace(bad.method, depth=1))  # nothing can come out in the first cycle
    proofs = campaign.run([good, late], tmp_path)
    report = campaign.report(proofs, "cdu formal")
    report.write(tmp_path)
    content = report.content
    assert (content["tests"], content["failures"]) == (2, 1)
    assert [proof["proven"] for proof in json.loads((tmp_path / "report.json").read_text())["proofs"]] == [True, False]
    assert len(ET.parse(tmp_path / "results.xml").findall(".//failure")) == 1
    page = tmp_path / "page.md"
    page.write_text(f"before\n{campaign.MARKS.begin}\nstale\n{campaign.MARKS.end}\nafter\n")
    campaign.put_table(page, proofs, "cdu formal")
    text = page.read_text()
    assert "stale" not in text
    assert text.startswith("before\n")
    assert text.endswith("\nafter\n")
    assert f"| {properties.HOLD} | 1 | 1 | 1 | 1 |\n" in text
    assert "| all | 1 | 2 | 1 | 1 |\n" in text
    assert campaign.proven(tmp_path / "proofs.csv") == {("shift_quantizer", "hold")}
    page.write_text("no marks")
    with pytest.raises(UserError, match="lacks the lines"):
        campaign.put_table(page, proofs, "cdu formal")


def test_rows_of_properties_that_were_not_run_stay(tmp_path):
    planned = catalog.properties(CduConfig(), ["code_packing", "range_join"])
    packing = next(one for one in planned if one.block == "code_packing")
    hold, independence, unasked = (one for one in planned if one.block == "range_join")
    proven = [campaign.Proof(one, Verdict(True), 100) for one in planned]
    page = tmp_path / "page.md"
    page.write_text(f"before\n{campaign.MARKS.begin}\n{campaign.MARKS.end}\nafter\n")

    def rows():
        (_, *lines) = csv.reader((tmp_path / "proofs.csv").read_text().splitlines())
        return [tuple(line) for line in lines]

    campaign.put_table(page, proven[::-1], "first", planned)
    assert [row[:2] for row in rows()] == [(one.block, one.name) for one in planned]
    assert {row[-3:] for row in rows()} == {("100", "proven", "first")}
    # One of them again: its row is a new one, the others are as they were.
    campaign.put_table(page, [campaign.Proof(hold, Verdict(False), 7)], "second", planned)
    assert [(row[1], *row[-3:]) for row in rows()] == [
        ("inverse", "100", "proven", "first"),
        ("hold", "7", "NOT PROVEN", "second"),
        ("independence", "100", "proven", "first"),
        ("unasked", "100", "proven", "first"),
    ]
    # The order is that of the list, and what is not in it goes.
    campaign.put_table(page, [campaign.Proof(unasked, Verdict(True), 5)], "third", [unasked, packing, independence])
    assert [(row[1], row[-3]) for row in rows()] == [("unasked", "5"), ("inverse", "100"), ("independence", "100")]
    assert page.read_text().startswith("before\n")
    assert page.read_text().endswith("\nafter\n")
    # Another file is refused and kept.
    (tmp_path / "proofs.csv").write_text("a,b\n")
    with pytest.raises(UserError, match="is no table of proofs: use a file that `cdu formal --table` has written"):
        campaign.put_table(page, proven, "fourth", planned)
    assert (tmp_path / "proofs.csv").read_text() == "a,b\n"


def test_statements_fit_in_cells_of_a_table():
    planned = catalog.properties(CduConfig())
    assert not [one.label for one in planned if "|" in one.statement]
    assert len({(one.block, one.name) for one in planned}) == len(planned)


def test_unknown_names_are_refused():
    with pytest.raises(ConfigError, match="unknown block 'dtc'"):
        catalog.properties(CduConfig(), ["dtc"])
    with pytest.raises(ConfigError, match="unknown property 'hodl': did you mean hold"):
        catalog.properties(CduConfig(), ["dct"], "hodl")
