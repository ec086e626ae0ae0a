"""The harness modules: SystemVerilog that a second program reads, bound without a gap, and no Verilog hidden in Python."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest
from cdu_spec.config import CONFIGS
from cdu_tools import verilator
from cdu_verif.formal import binding, device
from cdu_verif.proofs import catalog
from tools_here import needs_verilator

ROOM = Path(device.__file__).parent
FILES = {path.stem: path.read_text(encoding="utf-8") for path in binding.sources()}
#: Lines of Verilog that a string in Python may have.
MOST_LINES = 20
#: Properties whose harnesses instantiate all modules, with parameters and ports as their proofs have them.
BOUND = [
    ("affine_decoder", "codes"),
    ("affine_dequantizer", "arithmetic_0123"),
    ("affine_encoder", "codes"),
    ("affine_quantizer", "arithmetic_01"),
    ("alignment_buffer", "order"),
    ("axi_receiver", "order"),
    ("axi_sender", "ends"),
    ("axi_read_master", "bursts"),
    ("axi_write_master", "turns"),
    ("block_statistics", "encloses"),
    ("brc_decoder", "content"),
    ("brc_encoder", "content"),
    ("burst_former", "bursts"),
    ("burst_former", "words"),
    ("byte_packer", "order"),
    ("channel_control", "watchdog"),
    ("clock_crossing", "order"),
    ("code_packing", "inverse"),
    ("collector", "order"),
    ("control", "compress_counters"),
    ("crc_checker", "checksum"),
    ("crc_writer", "joins"),
    ("descriptor_fetch", "rung"),
    ("distributor", "order"),
    ("div_quantizer", "arithmetic"),
    ("entropy_decoder", "blocks"),
    ("entropy_encoder", "segment"),
    ("gatherer", "order"),
    ("gmc_decoder", "column"),
    ("gmc_decoder", "decodes"),
    ("gmc_decoder", "window"),
    ("gmc_encoder", "body"),
    ("gmc_encoder", "column"),
    ("gmc_encoder", "slots"),
    ("inverse_alignment_buffer", "order_2"),
    ("inverse_div_quantizer", "arithmetic"),
    ("inverse_sfpr", "arithmetic"),
    ("inverse_shift_quantizer", "arithmetic"),
    ("job_ledger", "records"),
    ("job_ledger", "turns"),
    ("job_planner", "places"),
    ("jpeg_decoder", "hold"),
    ("memory_reader", "room"),
    ("memory_writer", "outstanding"),
    ("memory_writer", "places"),
    ("mx_decoder", "arithmetic"),
    ("mx_encoder", "block"),
    ("mx_encoder", "element"),
    ("mx_encoder", "hold"),
    ("range_finder", "hold"),
    ("range_finder", "step"),
    ("range_store", "order"),
    ("scale_join", "order"),
    ("segment_cutter", "cuts"),
    ("sfpr", "arithmetic_stalls"),
    ("shift_quantizer", "arithmetic"),
    ("splitter", "jobs"),
    ("splitter", "mx"),
    ("splitter", "order"),
    ("transposer", "order"),
    ("transposer", "progress_o"),
    ("value_back", "counts"),
    ("value_back", "jobs"),
    ("value_front", "jobs"),
    ("zvc_decoder", "content"),
    ("zvc_encoder", "content"),
]
#: Waivers of a harness that a design may not have.
WAIVERS = """\
`verilator_config
// Free inputs and constants are wires that nothing drives
lint_off -rule UNDRIVEN
// A harness looks at some fields of a payload, and at some signals of what it instantiates
lint_off -rule UNUSEDSIGNAL
lint_off -rule PINCONNECTEMPTY
// Registers have a value at the begin of a proof
lint_off -rule PROCASSINIT
// Operators compute at the width of their result; ports must be bound to what is as wide as they are
lint_off -rule WIDTHEXPAND -file "*" -match "Operator *"
lint_off -rule WIDTHTRUNC -file "*" -match "Operator *"
// Items are numbered without a bound: what is beyond the last one is not looked at
lint_off -rule WIDTHTRUNC -file "*" -match "Bit extraction *"
// Sums over the elements of an array
lint_off -rule UNOPTFLAT
// Bounds that a range keeps by itself with some parameters
lint_off -rule CMPCONST
lint_off -rule UNSIGNED
// The device is here without its content
lint_off -rule DECLFILENAME
"""


@cache
def _harnesses(block, name):
    """Device and harness of the properties of a block with a name."""
    devices = [(one, one.device()) for one in catalog.properties(CONFIGS["tiny"], [block], name)]
    return [(made, one.method.harness(made)) for one, made in devices]


def _used(text):
    """The harness modules that a text instantiates, and those that these do."""
    own = {name for name in FILES if re.search(rf"^\s*{name} (?:#\(|\w+ \()", text, re.MULTILINE)}
    return own.union(*(_used(FILES[name]) for name in own))


def _shell(made):
    """The ports of a device."""
    ports = [f"{port['direction']} [{port['width'] - 1}:0] {port['name']}" for port in made.ports if port["width"]]
    probes = [f"output [{probe.width - 1}:0] \\{probe.path} " for probe in made.probes]
    return f"module {made.name} (\n  {', '.join(ports + probes)}\n);\nendmodule\n"


def _lint(made, text, folder, harness_files=FILES):
    (folder / "waivers.vlt").write_text(WAIVERS)
    (folder / "device.sv").write_text(_shell(made))
    (folder / "harness.sv").write_text(text)
    used = sorted(_used(text))
    for name in used:
        (folder / f"{name}.sv").write_text(harness_files[name])
    sources = [folder / f"{name}.sv" for name in ("harness", "device", *used)]
    return verilator.find().lint(*sources, top=device.HARNESS, waivers=folder / "waivers.vlt", language="1800-2017")


@needs_verilator
@pytest.mark.parametrize(("block", "name"), BOUND)
def test_harnesses_pass_the_lint_of_verilator(tmp_path, block, name):
    for made, text in _harnesses(block, name):
        assert not _lint(made, text, tmp_path)


@needs_verilator
@pytest.mark.parametrize(
    ("pattern", "replacement", "found"),
    [
        (r"\.i_ends\(.*\)", ".i_ends(o__payload[0 +: 2])", "WIDTHTRUNC"),  # a port is bound to what is wider
        (r"\.i_ends\(.*\),", "", "i_ends"),  # a port is bound to nothing
        (r"\.BEATS\(\d+\), ", "", "BEATS"),  # a parameter has no value
    ],
)
def test_the_lint_finds_what_is_bound_wrong(tmp_path, pattern, replacement, found):
    made, text = _harnesses("distributor", "order")[0]
    wrong, count = re.subn(pattern, replacement, text, count=1)
    assert count == 1
    assert found in _lint(made, wrong, tmp_path)


def test_every_harness_module_is_bound():
    assert set().union(*(_used(text) for block, name in BOUND for _, text in _harnesses(block, name))) == set(FILES)


@pytest.mark.parametrize("name", FILES)
def test_a_harness_file_holds_the_module_that_it_is_called_after(name):
    assert re.findall(r"^module (\w+)", FILES[name], re.MULTILINE) == [name]
    assert FILES[name].startswith("// ")
    assert max(map(len, FILES[name].splitlines())) <= 128


def _strings(path):
    """Texts of a module but for docstrings."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    plain = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    inside = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in ast.walk(tree):
        is_text = isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))
        if is_text and id(node) not in plain | inside:
            yield ast.get_source_segment(path.read_text(encoding="utf-8"), node)


@pytest.mark.parametrize("path", sorted(ROOM.glob("*.py")), ids=lambda path: path.stem)
def test_no_long_verilog_stands_in_python(path):
    verilog = re.compile(r"\b(?:module|always|assert|assume|wire|reg)\b")
    assert not [text for text in _strings(path) if verilog.search(text) and text.count("\n") > MOST_LINES]
