"""Shared library of a configuration's unit: generate, verilate, compile, each step kept in the cache."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cdu.delivery import generator
from cdu_spec.config import CduConfig
from cdu_tools import cache, verilator, yosys
from cdu_tools.compilers import cpp_compiler

from cdu_verif.backends.compiled import gates

HARNESS = Path(__file__).with_name("harness.cpp")
#: Header of the harness besides ports.h, which is written for each design.
_MEMORY = Path(__file__).with_name("memory.h")
#: Options of Verilator: plain two-state simulation at the highest speed.
_VERILATOR_OPTIONS = (
    "-O3",
    "--x-assign",
    "fast",
    "--x-initial",
    "fast",
    "--no-timing",
    "--noassert",
    "-Wno-fatal",
    "-Wno-lint",
)
#: Options of the C++ compiler. Symbols are hidden, because libraries of several units are loaded into one process.
_COMPILER_OPTIONS = (
    *("-std=gnu++17", "-fPIC", "-fvisibility=hidden", "-fno-strict-aliasing", "-fcf-protection=none"),
    *("-DVERILATOR=1", "-DVM_COVERAGE=0", "-DVM_SC=0", "-DVM_TIMING=0", "-DVM_TRACE=0", "-DVL_TIME_CONTEXT"),
)
#: Optimisation of the harness, which is small; of the model's code for every cycle, where a higher level compiles 1.5 times as
#: long and gains only 4 %, behind a DMA engine; and of the rest of the model (about as much code, called once).
_HARNESS, _FAST, _ONCE = "-O3", "-O1", "-O0"
#: Ending of the names of Verilator's files with code that is called once.
_CALLED_ONCE = "__Slow"
_LINKER_OPTIONS = ("-shared", "-pthread", "-Wl,-Bsymbolic")
#: Parts of Verilator's library that a plain model needs.
_RUNTIME = ("verilated.cpp", "verilated_threads.cpp")
_LIBRARY = "unit.so"
#: A signal of the port to memory, which is as wide as memory's words.
_MEMORY_DATA = "m_axi_rdata"


class CompileError(RuntimeError):
    """File that Verilator or the C++ compiler rejects; the message holds the end of the log."""


@dataclass(frozen=True)
class UnitPort:
    """An AXI4-Stream port: name (``s_axis``), bytes per transfer, and whether the unit receives there."""

    name: str
    size: int
    receives: bool


@dataclass(frozen=True)
class UnitDesign:
    """Input of a compilation.

    A Verilog file's text, the name of its top, its stream ports, its interrupt output, and the direction and width of each of
    its ports by name.
    """

    name: str
    verilog: str
    streams: tuple[UnitPort, ...]
    interrupt: str | None
    ports: Mapping[str, tuple[str, int]]

    @classmethod
    def of(cls, text: str, manifest: Mapping[str, Any]) -> UnitDesign:
        """Return the design of a generated file and its manifest."""
        ports = {port["name"]: (port["direction"], port["width"]) for port in manifest["ports"]}
        streams = []
        for name, (direction, width) in ports.items():
            if name.endswith("_tdata"):
                streams.append(UnitPort(name.removesuffix("_tdata"), width // 8, direction == "input"))
        return cls(manifest["top"], text, tuple(streams), "irq" if "irq" in ports else None, ports)


def unit(config: CduConfig) -> Path:
    """Return the shared library of a configuration's unit, which is made if it is not in the cache.

    Raises MissingToolError if Verilator or a C++ compiler is missing.
    """
    return library(generated(config))


def generated(config: CduConfig) -> UnitDesign:
    """Return a configuration's design with the harness's clock and reset, generated once for each state of the generator."""
    config = config.adapted(reset_active="high", reset_kind="sync")
    made = generator.kept(config, notify=lambda: _tell(f"generating the Verilog of unit {config.unit_name} (once)"))
    return UnitDesign.of(made.verilog, made.manifest)


def library(design: UnitDesign) -> Path:
    """Return the shared library of a design, which is made if it is not in the cache."""
    tool, compiler = verilator.find(), cpp_compiler("backend 'rtl'")
    parts = gates.parts(design.verilog, design.name)
    header = _header(design, parts)
    sources = (HARNESS.read_text("utf-8"), _MEMORY.read_text("utf-8"), Path(gates.__file__).read_text("utf-8"))
    yosys_build = yosys.engine()
    ingredients = [
        *(design.name, design.verilog, header, sources, tool.version, yosys_build.name, yosys_build.version, _target(compiler)),
        *(_VERILATOR_OPTIONS, _HARNESS, _FAST, _ONCE, _COMPILER_OPTIONS, _LINKER_OPTIONS, _RUNTIME),
    ]

    def make(folder: Path) -> None:
        begin = time.monotonic()
        _tell(f"compiling the unit {design.name} (once, a minute or a few)")
        work = folder / "build"
        work.mkdir()
        gated = gates.gated(design.verilog, design.name, design.ports, parts)
        (work / f"{design.name}.v").write_text(gated, encoding="utf-8")
        (work / "ports.h").write_text(header, encoding="utf-8")
        shutil.copy(HARNESS, work)
        shutil.copy(_MEMORY, work)
        names = ("--prefix", _class(design), "--top-module", gates.TOP)
        command = [str(tool.program), "--cc", *_VERILATOR_OPTIONS, *names, "-Mdir", "model", f"{design.name}.v"]
        _call(command, work, tool.environment)
        include = _root(tool) / "include"
        _link(compiler, work, include, _runtime(compiler, tool.version, include), folder / _LIBRARY)
        shutil.rmtree(work)
        _tell(f"compiled the unit {design.name} in {time.monotonic() - begin:.0f} s")

    return cache.entry("library", ingredients, make) / _LIBRARY


def _runtime(compiler: str, version: str, include: Path) -> list[str]:
    """Return the objects of Verilator's library, equal for all designs; they are made if they are not in the cache."""

    def make(folder: Path) -> None:
        _compile(compiler, [include / name for name in _RUNTIME], include, folder)

    folder = cache.entry("library_runtime", [version, _target(compiler), _FAST, _COMPILER_OPTIONS, _RUNTIME], make)
    return [str((folder / name).with_suffix(".o")) for name in _RUNTIME]


def _link(compiler: str, work: Path, include: Path, runtime: Sequence[str], target: Path) -> None:
    """Compile all C++ files of a build and link them with Verilator's library."""
    model = sorted((work / "model").glob("*.cpp"))
    once = [source for source in model if source.stem.endswith(_CALLED_ONCE)]
    often = [source for source in model if source not in once]
    sources = [*_joined(often, os.cpu_count() or 1, "model", work), *_joined(once, 1, f"model{_CALLED_ONCE}", work)]
    objects = _compile(compiler, [*sources, work / HARNESS.name], include, work)
    _call([compiler, *_LINKER_OPTIONS, *objects, *runtime, "-o", str(target.resolve())], work)


def _joined(sources: Sequence[Path], count: int, name: str, work: Path) -> list[Path]:
    """Return ``count`` files that include the sources in about equal parts, so that each reads Verilator's headers once."""
    joined: list[list[Path]] = [[] for _ in range(count)]
    lengths = [0] * count
    for source in sorted(sources, key=lambda source: source.stat().st_size, reverse=True):
        least = lengths.index(min(lengths))
        joined[least].append(source)
        lengths[least] += source.stat().st_size
    files = []
    for number, part in enumerate(filter(None, joined)):
        files.append(work / f"{number}_{name}.cpp")
        files[-1].write_text("".join(f'#include "model/{source.name}"\n' for source in part), encoding="utf-8")
    return files


def _compile(compiler: str, sources: Sequence[Path], include: Path, work: Path) -> list[str]:
    """Compile C++ files into a folder, as many at a time as there are processors, and return the objects."""
    includes = ["-I.", "-Imodel", f"-I{include}", f"-I{include / 'vltstd'}"]

    def one(source: Path) -> str:
        result = f"{source.stem}.o"
        effort = _HARNESS if source.name == HARNESS.name else _ONCE if source.stem.endswith(_CALLED_ONCE) else _FAST
        _call([compiler, effort, *_COMPILER_OPTIONS, *includes, "-c", str(source.resolve()), "-o", result], work)
        return result

    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        return list(pool.map(one, sources))


def _header(design: UnitDesign, parts: Sequence[gates.GatePart]) -> str:
    """Return the text of ports.h."""
    entries = {
        True: "".join(f" F({port.name}, {port.size})" for port in design.streams if port.receives),
        False: "".join(f" F({port.name}, {port.size})" for port in design.streams if not port.receives),
    }
    name = _class(design)
    lines = [f'CDU_HEADER "{name}.h"', f"CDU_TOP {name}", f"CDU_SOURCES(F){entries[True]}", f"CDU_SINKS(F){entries[False]}"]
    lines += [f"CDU_PARTS(F){''.join(f' F({part.name})' for part in parts)}"]
    lines += [f'CDU_ROOT_HEADER "{name}___024root.h"', f"CDU_ROOT {name}___024root"]
    lines += [f"CDU_INTERRUPT {design.interrupt}"] if design.interrupt else []
    lines += [f"CDU_MEMORY {design.ports[_MEMORY_DATA][1] // 8}"] if _MEMORY_DATA in design.ports else []
    return "".join(f"#define {line}\n" for line in lines)


def _class(design: UnitDesign) -> str:
    return f"V{design.name}"


def _target(compiler: str) -> str:
    """Return the identity of the compiler and its target: all macros that it defines."""
    command = [compiler, *_COMPILER_OPTIONS, "-dM", "-E", "-x", "c++", os.devnull]
    return _call(command, Path.cwd())


def _root(tool: verilator.Verilator) -> Path:
    """Return the folder of Verilator's library."""
    if "VERILATOR_ROOT" in tool.variables:
        return Path(tool.variables["VERILATOR_ROOT"])
    return Path(_call([str(tool.program), "--getenv", "VERILATOR_ROOT"], Path.cwd()).strip())


def _call(command: Sequence[str], folder: Path, environment: Mapping[str, str] | None = None) -> str:
    """Run a program in a folder and return its standard output. CompileError if it fails."""
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise CompileError(f"{Path(command[0]).name} failed: {(done.stderr + done.stdout)[-2000:]}")
    return done.stdout


def _tell(sentence: str) -> None:
    print(f"{sentence} ...", file=sys.stderr, flush=True)
