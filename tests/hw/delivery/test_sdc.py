"""Constraints: every port is constrained once at its clock, every name exists, and OpenSTA reads them."""

import re
import shutil
import subprocess

import pytest
import tcl
from cdu.delivery import generator
from cdu_spec import CduConfig
from cdu_spec.config_rules import OWN_CLOCKS

CLOCKED = CduConfig(modes=("brc",), own_clocks=OWN_CLOCKS, reset_kind="async")
UNITS = {
    "tiny": CduConfig(),
    "engine": CduConfig(modes=("brc",), dma_bits=64, own_clocks=("registers",), reset_kind="async", reset_active="low"),
    "clocked": CLOCKED,
}
#: Commands and options in use, each with the number of words behind it.
ALLOWED = {
    "create_clock": {"-name": 1, "-period": 1},
    "set_input_delay": {"-clock": 1},
    "set_output_delay": {"-clock": 1},
    "set_max_delay": {"-ignore_clock_latency": 0, "-from": 1, "-to": 1},
    "set_false_path": {"-hold": 0, "-from": 1, "-to": 1},
    "if": {},
}


@pytest.fixture(params=UNITS.values(), ids=UNITS)
def made(request):
    return generator.kept(request.param)


def parsed(words):
    """Return the command, its options, and its other words. KeyError for a command or option that is not allowed."""
    command, *rest = words
    options, others = {}, []
    while rest:
        word = rest.pop(0)
        if word.startswith("-"):
            options[word] = [rest.pop(0) for _ in range(ALLOWED[command][word])]
        else:
            others.append(word)
    return command, options, others


def objects(text, kind):
    """Yield the names in ``[get_KIND NAMES]``."""
    for found in re.findall(rf"\[get_{kind} (\{{[^}}]*\}}|\w+)\]", text):
        yield from tcl.inside(found)


def test_every_name_exists_and_every_port_is_constrained_once(made):
    text, ports = made.flows[".sdc"], {port["name"]: port for port in made.manifest["ports"]}
    assert set(objects(text, "ports")) == set(ports)
    clocks, delays, variables = {}, [], set()
    for words in tcl.commands(text):
        command, options, others = parsed(words)
        if command == "if":
            variables.add(re.search(r"info exists (\w+)", others[0])[1])
            continue
        assert set(re.findall(r"\$(\w+)", " ".join(words))) <= variables, "parameters come before their use"
        if command == "create_clock":
            clocks[options["-name"][0]] = next(objects(others[0], "ports"))
        if command in ("set_input_delay", "set_output_delay"):
            direction = command.removeprefix("set_").removesuffix("_delay")
            for name in objects(others[1], "ports"):
                assert ports[name]["direction"] == direction
                delays.append((name, options["-clock"][0]))
        assert set(objects(" ".join(words), "clocks")) <= set(clocks)
    config = CduConfig.from_dict(made.manifest["config"])
    assert clocks == {clock: clock for clock, _ in config.clock_ports.values()}
    assert sorted(name for name, _ in delays) == sorted(set(ports) - set(clocks))
    own = {interface["name"]: interface["clock"] for interface in made.manifest["interfaces"]}
    for name, clock in delays:
        prefix = name.rpartition("_")[0]
        assert clock == own.get(prefix, dict(map(reversed, config.clock_ports.values())).get(name, "clk"))


def test_pairs_of_clocks_with_paths_are_constrained(made):
    text = made.flows[".sdc"]
    pairs = {(crossing["begin"], crossing["end"]) for crossing in made.manifest["crossings"]}
    assert set(re.findall(r"set_max_delay .*-from \[get_clocks (\w+)\] -to \[get_clocks (\w+)\]", text)) == pairs
    resets = {(c["sources"][0], c["end"]) for c in made.manifest["crossings"] if c["kind"] == "reset"}
    assert set(re.findall(r"set_false_path -from \[get_ports (\w+)\] -to \[get_clocks (\w+)\]", text)) == resets


def test_a_combinational_block_has_a_clock_of_its_surroundings():
    made = generator.kept(CduConfig(), "mx_encoder")
    assert ("clk" in {port["name"] for port in made.manifest["ports"]}) == ("[get_ports clk]" in made.flows[".sdc"])


needs_opensta = pytest.mark.skipif(not shutil.which("sta"), reason="OpenSTA is not installed: apt-get install opensta")
LIBRARY = """library (tiny) { time_unit : "1ns"; capacitive_load_unit (1,pf);
  input_threshold_pct_rise : 50; input_threshold_pct_fall : 50; output_threshold_pct_rise : 50; output_threshold_pct_fall : 50;
  slew_lower_threshold_pct_rise : 20; slew_lower_threshold_pct_fall : 20;
  slew_upper_threshold_pct_rise : 80; slew_upper_threshold_pct_fall : 80; }
"""


@needs_opensta
def test_opensta_reads_the_constraints_and_parameters_replace_defaults(made, tmp_path):
    ports = made.manifest["ports"]
    heads = (f"  {port['direction']} [{port['width'] - 1}:0] {port['name']};" for port in ports)
    flat = (re.sub(r" \[0:0\]", "", head) for head in heads)
    shell = f"module {made.top} ({', '.join(port['name'] for port in ports)});\n" + "\n".join(flat) + "\nendmodule\n"
    for name, text in (("shell.v", shell), ("tiny.lib", LIBRARY), ("unit.sdc", made.flows[".sdc"])):
        (tmp_path / name).write_text(text)
    read = f"read_liberty tiny.lib\nread_verilog shell.v\nlink_design {made.top}\n"
    (tmp_path / "run.tcl").write_text(f"{read}set clk_period 3.5\nread_sdc unit.sdc\nwrite_sdc out.sdc\n")
    run = subprocess.run(["sta", "-exit", "run.tcl"], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert not re.search(r"^(Error|Warning)", run.stdout + run.stderr, re.MULTILINE), run.stdout + run.stderr
    written = (tmp_path / "out.sdc").read_text()
    assert re.search(r"create_clock -name clk -period 3.50*\D", written)
    for clock in ("clk", *(f"{name}_clk" for name in CduConfig.from_dict(made.manifest["config"]).own_clocks)):
        assert f"create_clock -name {clock} " in written
    assert written.count("set_input_delay") == sum(
        port["width"] for port in ports if port["direction"] == "input" and not port["name"].endswith("clk")
    )
