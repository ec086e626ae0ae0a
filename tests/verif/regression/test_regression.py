"""Generated Verilog in a simulator, and faulty Verilog that a bench must reject."""

import re

import pytest
import torch
from actcodec.golden import dct as golden
from cdu_spec.config import CduConfig
from cdu_tools.errors import UserError
from cdu_verif.regression import plan, regression, test_names
from cdu_verif.simulation import simulators
from tools_here import needs_icarus, needs_verilator


def _simulate(tmp_path, block, simulator, mutate=None, tests=()):
    (run,) = plan.runs(CduConfig(), [block], full=False, pinned=["rounding", "value_format", "coders"])
    settings = regression.RunSettings(tmp_path, simulator, tests=tests)
    return regression.simulate(run, settings, mutate).tests


@needs_verilator
def test_a_block_passes_with_verilator(tmp_path):
    tests = _simulate(tmp_path, "inverse_shift_quantizer", "verilator")
    assert {test.status for test in tests} <= {"pass", "skip"}
    assert sum(test.status == "pass" for test in tests) >= 10
    assert all(test.cases and test.cycles for test in tests if test.status == "pass")
    names = [test.name for test in tests]
    assert test_names.names("inverse_shift_quantizer", CduConfig(), ["cdu_verif.benches.blocks"]) == set(names)
    runs = plan.runs(CduConfig(), ["inverse_shift_quantizer"], full=False)
    regression.check_tests(runs, names)
    with pytest.raises(UserError, match=f"unknown test '{names[0]}x': did you mean {names[0]}"):
        regression.check_tests(runs, [*names, f"{names[0]}x"])


@needs_verilator
def test_waveforms_are_fst(tmp_path):
    """A reader that is not ours sees every transfer, and results that belong to the inputs."""
    (run,) = plan.runs(CduConfig(), ["dct"], full=False, pinned=["sample_bits", "dct_stages", "const_bits", "pass1_bits"])
    (test,) = regression.simulate(run, regression.RunSettings(tmp_path, waves="fst", tests=("rate",))).tests
    assert test.status == "pass", test.message
    wanted = {"clk", "rst", *(f"{stream}__{role}" for stream in "io" for role in ("valid", "ready", "payload"))}
    before, rows = {}, {"i": [], "o": []}
    for changes in _waveform(tmp_path / "runs" / run.folder / simulators.waves_file("fst"), wanted):
        if before.get("clk") == "0" and changes.get("clk") == "1" and before["rst"] == "0":
            for stream, found in rows.items():
                if before[f"{stream}__valid"] == before[f"{stream}__ready"] == "1":
                    found.append(_lanes(before[f"{stream}__payload"]))
        before |= changes
    blocks = torch.tensor(rows["i"], dtype=torch.int16).view(-1, 8, 8)
    results = torch.tensor(rows["o"], dtype=torch.int16).view(-1, 8, 8).transpose(1, 2)
    assert test.figures["random i"].split()[0] == str(len(rows["i"]))
    assert torch.equal(golden.dct(blocks, run.config.const_bits, run.config.pass1_bits), results)


@needs_verilator
@pytest.mark.parametrize("waves", ["fst", pytest.param("vcd", marks=pytest.mark.campaign)])
def test_waveforms_have_the_buffers(tmp_path, waves):
    """Elements of a memory of more words, and of more bits, than Verilator traces by itself change in the waveform."""
    run = plan.PlannedRun("axi_read_master", CduConfig(dma_bits=512), ())
    (test,) = regression.simulate(run, regression.RunSettings(tmp_path, waves=waves, tests=("rate",))).tests
    assert test.status == "pass", test.message
    path = tmp_path / "runs" / run.folder / simulators.waves_file(waves)
    changed = (_changed_in_vcd if waves == "vcd" else _changed_in_fst)(path)
    for element in (0, 31, 32, 63):
        values = [values for name, values in changed if name.endswith(f".words[{element}]")]
        assert any(len(set(found)) > 1 and max(map(len, found)) > 256 for found in values), element


def _changed_in_vcd(path):
    """The elements of memories, with their scopes, and the values that each has had."""
    scopes, names, values = [], {}, {}
    with path.open() as lines:
        for line in lines:
            words = line.split()
            if not words:
                continue
            if words[0] == "$scope":
                scopes.append(words[2])
            elif words[0] == "$upscope":
                scopes.pop()
            elif words[0] == "$var":
                names[words[3]] = ".".join([*scopes, words[4]])
            elif line[0] == "b":
                values.setdefault(words[1], []).append(words[0][1:])
    return [(name, values[code]) for code, name in names.items() if code in values]


def _changed_in_fst(path):
    pylibfst = pytest.importorskip("pylibfst")
    file = pylibfst.lib.fstReaderOpen(str(path).encode())
    assert file != pylibfst.ffi.NULL, f"{path} is no FST file"
    _, signals = pylibfst.get_scopes_signals2(file)
    pylibfst.lib.fstReaderSetFacProcessMaskAll(file)
    values = {}
    pylibfst.fstReaderIterBlocks(
        file, lambda _, time, handle, value: values.setdefault(handle, []).append(pylibfst.string(value))
    )
    pylibfst.lib.fstReaderClose(file)
    return [(name.split(" ")[0], values[one.handle]) for name, one in signals.by_name.items() if one.handle in values]


def _waveform(path, names):
    """Changes of signals of the top, by time: name to the new bits, most significant first."""
    pylibfst = pytest.importorskip("pylibfst")
    file = pylibfst.lib.fstReaderOpen(str(path).encode())
    assert file != pylibfst.ffi.NULL, f"{path} is no FST file"
    _, signals = pylibfst.get_scopes_signals2(file)
    tops = {signal.handle: name.split(".")[-1].split(" ")[0] for name, signal in signals.by_name.items() if name.count(".") < 2}
    assert names <= set(tops.values())
    pylibfst.lib.fstReaderSetFacProcessMaskAll(file)
    times = {}

    def changed(_, time, handle, value):
        if tops.get(handle) in names:
            times.setdefault(time, {})[tops[handle]] = pylibfst.string(value)

    pylibfst.fstReaderIterBlocks(file, changed)
    pylibfst.lib.fstReaderClose(file)
    return times.values()


def _lanes(bits):
    """Eight signed integers, lane 0 in the lowest bits."""
    width = len(bits) // 8
    words = [int(bits[begin : begin + width], 2) for begin in range(0, len(bits), width)]
    return [word - (word >> (width - 1) << width) for word in reversed(words)]


@needs_icarus
def test_a_block_passes_with_icarus(tmp_path):
    tests = _simulate(tmp_path, "brc_encoder", "icarus", tests=("corners/pattern=bursts", "rate"))
    assert [test.status for test in tests] == ["pass", "pass"]


def _between(port, fault):
    """A fault between the block's output and the port that the bench sees: the block stands in a top of the same name."""

    def mutate(text):
        header = re.search(r"^module cdu_brc_encoder \(\n(.*?)\n\);$", text, re.MULTILINE | re.DOTALL)
        ports = re.findall(r"^  (input|output) +(?:wire|reg) +(\[\d+:0\] )?(\w+)", header[1], re.MULTILINE)
        declared = ",\n".join(f"  {direction} wire {width}{name}" for direction, width, name in ports)
        raw = next(width for _, width, name in ports if name == port)
        connections = ", ".join(f".{name}({'raw' if name == port else name})" for _, _, name in ports)
        top = (
            f"module cdu_brc_encoder (\n{declared}\n);\n  wire {raw}raw;\n  assign {port} = raw {fault};\n"
            f"  good good ({connections});\nendmodule\n"
        )
        return text.replace(header[0], header[0].replace("cdu_brc_encoder", "good")) + top

    return mutate


def _deaf(text):
    faulty, count = re.subn(r"assign i__ready = [^;]*;", "assign i__ready = 1'h0;", text, count=1)
    assert count == 1, "i__ready is not assigned as this test expects"
    return faulty


@needs_icarus
@pytest.mark.parametrize(
    ("fault", "mutate"),
    [
        ("a byte count that is one off", _between("o__payload", "^ (86'd1 << 72)")),
        ("a wrong bit of data", _between("o__payload", "^ 86'd4")),
        ("a valid that falls while it waits", _between("o__valid", "& i__valid")),
        ("an input that is never taken", _deaf),
    ],
)
def test_a_fault_is_found(tmp_path, fault, mutate):
    tests = _simulate(tmp_path, "brc_encoder", "icarus", mutate, ("corners/pattern=bursts", "random_content/pattern=coins"))
    assert any(test.status == "FAIL" for test in tests), fault
    assert all("--test" in test.repeat for test in tests if test.status == "FAIL")


@needs_icarus
def test_verilog_that_does_not_compile_is_a_failure(tmp_path):
    (test,) = _simulate(tmp_path, "brc_encoder", "icarus", lambda text: text.replace("endmodule", "", 1))
    assert (test.name, test.status) == ("build", "FAIL")
