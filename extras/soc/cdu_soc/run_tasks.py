"""``cdu soc``: activations of a network in training through the system, compared in memory with the golden model's bytes."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from actcodec.study.setup import TrainingSetup
from cdu_spec.config import CduConfig
from cdu_spec.dma import DMA_ERRORS
from cdu_spec.modes import Mode
from cdu_spec.registers import register
from cdu_tools import verilator
from cdu_tools.errors import UserError
from cdu_tools.progress import Progress, Silent
from cdu_tools.report import Page, Report, Table, json_text
from cdu_verif.stimulus import recorded_jobs

from cdu_soc import program, system, tasks
from cdu_soc.tasks import FoundTask, PlacedTask, Task

#: Number of tensors of a training step that are used.
_TENSORS = 2
_UNIT_ERROR = 1 << next(place for place, (name, _) in enumerate(DMA_ERRORS) if name == "unit")


@dataclass(frozen=True)
class TaskOutcome:
    """Outcome of a task: its results as the program left them, and a sentence for each fault."""

    task: Task
    found: FoundTask
    faults: Sequence[str]

    @property
    def unit_errors(self) -> list[str]:
        """Return the names of the errors that the damaged payload caused."""
        return [name for name, bit in register("ERRORS").unpack(self.found.unit_errors).items() if bit]


def recorded_tasks(config: CduConfig) -> list[Task]:
    """Return activations of a network in training on handwritten digits, in every mode of the unit.

    UserError for a unit without mode jpeg-act, because the tensors are those of that mode.
    """
    if Mode.JPEG_ACT not in config.built_modes:
        raise UserError("the system compresses activations of a policy with mode jpeg-act: use a unit that has it")
    setup = TrainingSetup(dataset="digits", steps=2, batch=8)
    recorded = recorded_jobs.record(setup.recipe, setup.images, [Mode.JPEG_ACT], images=1)[Mode.JPEG_ACT]
    return [Task.of(config, one.name, one.values, mode) for one in recorded[:_TENSORS] for mode in config.built_modes]


def run_tasks(config: CduConfig, given: Sequence[Task], progress: Progress | None = None) -> tuple[list[TaskOutcome], int]:
    """Build the system, run the program on tasks, and compare memory; return the outcomes and the total number of cycles.

    ``config`` is one of :func:`cdu_soc.system.configuration`. Raises MissingToolError if the compiler for RISC-V, the
    processor, Verilator or a C++ compiler is missing, and RuntimeError if the program does not end normally.
    """
    shown = progress or Silent()
    memory = tasks.Memory(program.program(), system.MEMORY_BYTES)
    placed = memory.put_tasks(given)
    simulation = system.built(config, lambda: shown.say("building the system (once, a minute or two)"))
    with tempfile.TemporaryDirectory(prefix="cdu-soc-") as folder:
        code, cycles, left = system.run(simulation, bytes(memory.content), Path(folder))
    if code:
        raise RuntimeError(f"the program ended with {code}")
    return [_judged(place, tasks.found(left, number), left) for number, place in enumerate(placed)], cycles


def recorded_report(config: CduConfig, command: str, progress: Progress | None = None) -> Report:
    """Report recorded activations through the system: report.md and report.json. Errors are those of :func:`run_tasks`."""
    chosen = system.configuration(config)
    program.compiler()
    system.processor()
    verilator.find()
    outcomes, cycles = run_tasks(chosen, recorded_tasks(chosen), progress)
    return _report(chosen, outcomes, cycles, command)


def _judged(placed: PlacedTask, found: FoundTask, memory: bytes) -> TaskOutcome:
    task, golden = placed.task, placed.task.item.payload
    checks = {
        "compression failed": found.compressed == 1,
        f"the payload has {found.payload_bytes} bytes, not {len(golden)}": found.payload_bytes == len(golden),
        "nobody noticed the damaged payload": found.refused == 1 and found.errors == _UNIT_ERROR and found.unit_errors != 0,
        "decompression failed": found.decompressed == 1,
        "no interrupt was taken": found.interrupts > 0,
    }
    faults = [f"{task.label}: {said}" for said, good in checks.items() if not good]
    return TaskOutcome(task, found, [*faults, *tasks.differences(memory, placed)])


def _report(config: CduConfig, outcomes: Sequence[TaskOutcome], cycles: int, command: str) -> Report:
    header = ["activation", "mode", "values", "bytes", "payload", "compress, cycles", "decompress, cycles", "damaged payload"]
    rows = [
        [
            *(one.task.name, one.task.mode.label, str(one.task.values.numel()), str(len(one.task.restored))),
            *(str(one.found.payload_bytes), str(one.found.compress_cycles), str(one.found.decompress_cycles)),
            ", ".join(one.unit_errors),
        ]
        for one in outcomes
    ]
    faults = [fault for one in outcomes for fault in one.faults]
    interrupts = outcomes[-1].found.interrupts
    said = f"{len(outcomes)} tasks, {len(faults)} faults, {interrupts} interrupts, {cycles} cycles"
    content: dict[str, Any] = {
        "tasks": [{"name": one.task.label, **asdict(one.found), "faults": list(one.faults)} for one in outcomes],
        "cycles": cycles,
        "unit": config.unit_name,
        "config": config.to_dict(),
        "command": command,
    }
    about = "Payload and restored values in memory are compared with the golden model's, byte by byte."
    facts = {"command": f"`{command}`", "unit": config.unit_name}
    page = Page("The system", [f"{said}. {about}", Table(header, rows)], facts)
    files = {"report.md": page.markdown(), "report.json": json_text(content)}
    return Report(content, files, [said], faults)
