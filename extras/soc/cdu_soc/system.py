"""The system: its Verilog, and its simulation by Verilator, built once per configuration and run on the content of memory."""

from __future__ import annotations

import importlib
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

from cdu.delivery import generator
from cdu.delivery.verilog import convert
from cdu_spec.config import CduConfig
from cdu_spec.config_texts import text_of
from cdu_tools import cache, verilator
from cdu_tools.compilers import cpp_compiler
from cdu_tools.distribution import missing
from cdu_tools.errors import UserError

from cdu_soc.interconnect import Interconnect
from cdu_soc.memory_access import WORD_BYTES

_HERE = Path(__file__).parent
_PROCESSOR_PACKAGE, _PROCESSOR = "pythondata_cpu_vexriscv", "VexRiscv_Min.v"
_OPTIONS = ("--binary", "--timing", "-O3", "--x-assign", "fast", "--x-initial", "fast", "-Wno-fatal", "-Wno-lint", "-Wno-style")
_COMPILER_OPTIONS = ("-CFLAGS", "-std=c++20 -O1", "--output-split", "20000", "-j", "2")
_PROGRAM, _SIMULATION = "system", "simulation"
#: Name of the top module.
TOP = "system"
#: Binary logarithm of the words of memory.
WORD_BITS = 15
MEMORY_BYTES = WORD_BYTES << WORD_BITS
#: Parameters of the unit that the system determines.
_OWN: dict[str, Any] = {"dma_bits": 8 * WORD_BYTES, "reset_active": "high", "reset_kind": "sync", "own_clocks": ()}


def configuration(config: CduConfig) -> CduConfig:
    """Return the configuration of the system: an engine as wide as its memory, clock and reset of its processor.

    Raises UserError for a configuration with other values of these parameters.
    """
    given = {name: getattr(config, name) for name in _OWN}
    others = [name for name, value in given.items() if value not in (getattr(CduConfig, name), _OWN[name])]
    if others:
        wrong, right = (", ".join(f"{name} = {text_of(values[name])}" for name in others) for values in (given, _OWN))
        raise UserError(f"the system has {right}, not {wrong}: leave out {' and '.join(others)}")
    return config.override(**_OWN)


def processor() -> Path:
    """Return the Verilog of the processor, which is no part of this project: a VexRiscv (MIT licence), from its package.

    Raises MissingToolError if it is missing.
    """
    try:
        package: Any = importlib.import_module(_PROCESSOR_PACKAGE)
    except ModuleNotFoundError:
        raise missing("the processor of the system", "soc") from None
    return Path(package.data_file(_PROCESSOR))


def verilog(config: CduConfig) -> dict[str, str]:
    """Return the system's Verilog by file, with :data:`TOP` as its top; ``config`` is one of :func:`configuration`.

    Raises MissingToolError if the processor is missing.
    """
    cpu = processor()
    unit = generator.kept(config)
    return {
        "unit.v": unit.verilog,
        "interconnect.v": convert(Interconnect(WORD_BITS), "cdu_interconnect"),
        "system.v": f"`define UNIT {unit.top}\n" + (_HERE / "system.v").read_text("utf-8"),
        "cpu.v": cpu.read_text("utf-8"),
    }


def design(config: CduConfig) -> dict[str, tuple[str, str]]:
    """Return top module and text of the system, by its name, for programs that map and place designs."""
    return {TOP: (TOP, "\n".join(verilog(config).values()))}


def built(config: CduConfig, notify: Callable[[], None] | None = None) -> Path:
    """Return the simulation of a system as a program; it is made if it is not in the cache, after a call of ``notify``.

    ``config`` is one of :func:`configuration`. Raises MissingToolError without processor, Verilator or C++ compiler.
    """
    tool = verilator.find()
    cpp_compiler("the simulation of a system")
    texts = verilog(config) | {"simulation.sv": (_HERE / "simulation.sv").read_text("utf-8")}

    def make(folder: Path) -> None:
        if notify:
            notify()
        work = folder / "build"
        work.mkdir()
        for name, text in texts.items():
            (work / name).write_text(text, encoding="utf-8")
        top = (f"-GWORD_BITS={WORD_BITS}", "--top-module", _SIMULATION, "-Mdir", "model", "-o", _PROGRAM)
        command = [str(tool.program), *_OPTIONS, *_COMPILER_OPTIONS, *top, *texts]
        done = subprocess.run(command, cwd=work, env=tool.environment, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"the system was not built:\n{done.stdout}{done.stderr}"[-4000:])
        shutil.copy(work / "model" / _PROGRAM, folder / _PROGRAM)
        shutil.rmtree(work)

    return cache.entry("soc", [texts, tool.version, _OPTIONS, _COMPILER_OPTIONS, WORD_BITS], make) / _PROGRAM


def run(simulation: Path, memory: bytes, folder: Path) -> tuple[int, int, bytes]:
    """Run the system on the content of its memory; return the program's exit code, cycles, and memory at the end.

    Writes image.hex and dump.hex to ``folder``. Raises RuntimeError if the program does not end.
    """
    image, dump = folder / "image.hex", folder / "dump.hex"
    words = (memory[place : place + WORD_BYTES] for place in range(0, len(memory), WORD_BYTES))
    image.write_text("".join(f"{int.from_bytes(word, 'little'):016x}\n" for word in words), encoding="ascii")
    command = [str(simulation), f"+image={image}", f"+dump={dump}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    match = re.search(r"^exit (\d+) after (\d+) cycles", done.stdout, re.MULTILINE)
    if match is None:
        raise RuntimeError(f"the program has no end:\n{done.stdout}{done.stderr}"[-4000:])
    lines = dump.read_text(encoding="ascii").split()
    left = b"".join(int(word, 16).to_bytes(WORD_BYTES, "little") for word in lines if not word.startswith(("/", "@")))
    return int(match[1]), int(match[2]), left
