"""Program of the system: the delivered driver and its use, compiled for the processor."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path

import cdu_driver
from cdu_spec.dma_documents import dma_c_header
from cdu_spec.register_documents import c_header
from cdu_tools.errors import by_system, not_installed

from cdu_soc import tasks

_HERE = Path(__file__).parent
#: Folder of the driver in C, and the header that it includes.
DRIVER = Path(cdu_driver.__file__).parent / "c"
HEADER = "tiny.h"
_TOOLS = "riscv64-unknown-elf-"
_OPTIONS = ("-march=rv32i", "-mabi=ilp32", "-Os", "-ffreestanding", "-fno-tree-loop-distribute-patterns")
_WARNINGS = ("-Wall", "-Wextra", "-Werror")
_LINKER = ("-nostdlib", "-nostartfiles", "-static", "-Wl,--no-warn-rwx-segments")


def compiler() -> str:
    """Return the compiler for RISC-V; MissingToolError if it is missing."""
    found = shutil.which(f"{_TOOLS}gcc")
    if found is None or shutil.which(f"{_TOOLS}objcopy") is None:
        raise not_installed("a compiler for RISC-V", by_system("gcc-riscv64-unknown-elf"))
    return found


def program() -> bytes:
    """Return the bytes of the program, from address 0 on.

    Raises MissingToolError without a compiler, and RuntimeError with the compiler's output if it rejects the sources.
    """
    gcc = compiler()
    with tempfile.TemporaryDirectory(prefix="cdu-soc-") as place:
        folder = Path(place)
        (folder / HEADER).write_text(c_header() + dma_c_header(), encoding="utf-8")
        (folder / "tasks.h").write_text(tasks.c_header(), encoding="utf-8")
        defined = [f"-Wa,--defsym,{name}={value:#x}" for name, value in tasks.symbols().items()]
        linked = [f"-Wl,--defsym={name}={value:#x}" for name, value in tasks.symbols().items()]
        script = ["-T", str(_HERE / "link.ld")]
        sources = [str(path) for path in (_HERE / "main.c", DRIVER / "dma.c")]
        includes = ["-I", str(folder), "-I", str(DRIVER)]
        _call([gcc, *_OPTIONS, *defined, "-c", str(_HERE / "start.S"), "-o", "start.o"], folder)
        what = ["start.o", *sources, "-o", "program.elf"]
        _call([gcc, *_OPTIONS, *_WARNINGS, *includes, *_LINKER, *linked, *script, *what, "-lgcc"], folder)
        _call([f"{_TOOLS}objcopy", "-O", "binary", "program.elf", "program.bin"], folder)
        return (folder / "program.bin").read_bytes()


def _call(command: list[str], folder: Path) -> None:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{command[0]} failed:\n{done.stdout}{done.stderr}"[-4000:])
