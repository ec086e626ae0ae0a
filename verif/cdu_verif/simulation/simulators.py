"""Simulators: their requirements, and how a generated file is built and run with them."""

from __future__ import annotations

import logging
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from cdu_tools import verilator
from cdu_tools.errors import UserError, by_system, not_installed
from cdu_tools.near_names import unknown
from cocotb_tools.runner import Runner, Verilator, get_runner
from find_libpython import find_libpython

from cdu_verif.simulation import fst, runtime_objects
from cdu_verif.simulation.bench import SEED

SIMULATORS = ("verilator", "icarus")
#: Formats of waveforms.
WAVES = ("fst", "vcd")
_TIMESCALE = ("1ns", "1ps")
_QUIET = ("-Wno-fatal", "-Wno-lint")
#: Elements of an array, and bits of a signal, up to which Verilator traces it; its defaults are 32 and 256. It silently omits
#: larger ones, buffers among them; no array and no signal of a unit is larger than these limits.
_TRACED = ("--trace-max-array", "1048576", "--trace-max-width", "1048576")
_COVERAGE = ("--coverage-line", "--coverage-toggle", "--coverage-expr")
#: Make option that compiles all C++ of a design as one file, which needs no precompiled header of its own.
_MAKE = ("VM_PARALLEL_BUILDS=0",)
#: Bytes of Verilog from which optimised C++ saves more time than it costs: simulations of blocks spend theirs in Python.
_LARGE = 1 << 20
#: Files in which assertions show values. cocotb would otherwise rewrite every module, even torch: most of a short simulation.
_TELLING = "*/cdu_verif/*.py"
#: Make options for code that is called once, half of the C++ of a large design, in a file of its own.
_ONCE = ("VM_PREFIX=Vonce", "VM_FAST=", "Vonce__ALL.o")
#: Make options for the rest and for the program, which is linked with that file.
_WITHOUT_ONCE = ("VM_SLOW=", "LOADLIBES=Vonce__ALL.o")
#: Option of cocotb's runner, and its replacement.
_ALL_PUBLIC, _TOP_PUBLIC = "--public-flat-rw", ("--public-depth", "1")


class _VerilatorOfPorts(Verilator):
    """cocotb's Verilator runner with only the top's own signals public, and with options for each call of make.

    If all signals were public, Verilator could neither remove nor merge any: several times as much C++ to compile, and slower
    simulations.
    """

    def __init__(self, waves: str | None, *calls: Sequence[str]) -> None:
        super().__init__()
        self._waves, self._calls = waves, calls

    def _waves_file(self) -> str:
        return waves_file(self._waves or WAVES[0])

    def _build_command(self) -> list[list[str]]:
        verilate, make = super()._build_command()
        place = verilate.index(_ALL_PUBLIC)
        return [[*verilate[:place], *_TOP_PUBLIC, *verilate[place + 1 :]], *([*make, *options] for options in self._calls)]


class BuildError(RuntimeError):
    """Generated file that the simulator rejects."""


def waves_file(waves: str) -> str:
    """Return the name of the waveform of a run, in a format of :data:`WAVES`."""
    return f"dump.{waves}"


def check(simulator: str) -> None:
    """Raise UserError for an unknown simulator, MissingToolError for one, or for a Python package, that is not installed."""
    if simulator not in SIMULATORS:
        raise UserError(unknown("simulator", simulator, SIMULATORS))
    if simulator == "verilator":
        verilator.find()
    elif shutil.which("iverilog") is None or shutil.which("vvp") is None:
        raise not_installed("Icarus Verilog", by_system("iverilog"))
    if find_libpython() is None:
        raise not_installed("Python as a shared library, which cocotb needs,", by_system("python3-dev"))


class Simulation:
    """One built top.

    Parameters
    ----------
    source
        The generated Verilog file.
    top
        Name of its top module.
    folder
        Folder in which the simulator builds and runs.
    simulator
        ``verilator`` or ``icarus``.
    waves
        Format of :data:`WAVES` for a waveform, ``dump.fst`` or ``dump.vcd``, with Verilator only; default: none is recorded.
        It has every named signal and every element of a memory; nets without a name of their own (``_012_``) are left out.
    coverage
        Whether lines, toggles and expressions are counted, with Verilator only.
    properties
        Further files with modules of properties and their binding, with Verilator only; a violation ends the simulation.
    """

    def __init__(
        self,
        source: Path,
        top: str,
        folder: Path,
        simulator: str,
        *,
        waves: str | None = None,
        coverage: bool = False,
        properties: Sequence[Path] = (),
    ) -> None:
        self.source, self.top, self.folder, self.simulator = source, top, folder, simulator
        self.waves, self.coverage, self.properties = waves, coverage, properties
        folder.mkdir(parents=True, exist_ok=True)
        self._runner: Runner | None = None

    @property
    def coverage_file(self) -> Path:
        """Return the path at which a run writes its coverage counts."""
        return self.folder / "coverage.dat"

    def build(self) -> None:
        """Compile the top; BuildError with the end of the log if that fails.

        An earlier build is removed first: for example a program named ``array`` would break C++ that includes ``<array>``.
        """
        shutil.rmtree(self.folder / "sim", ignore_errors=True)
        if self.simulator != "verilator":
            self._build(get_runner(self.simulator), ())
            return
        tool, sim = verilator.find(), self.folder / "sim"
        options = [
            *_QUIET,
            *(["--assert"] if self.properties else ()),
            *(_COVERAGE if self.coverage else ()),
            *([f"--trace-{self.waves}", *_TRACED] if self.waves else ()),
        ]
        runtime = runtime_objects.ingredients(tool, options)
        # With counters the compiler takes longer to optimise the code than the simulation runs.
        effort = "-O1" if self.source.stat().st_size >= _LARGE and not self.coverage else "-O0"
        lent = runtime_objects.lend(runtime, sim)

        def made(effort: str, *what: str) -> list[str]:
            return [*_MAKE, f"OPT_FAST={' '.join([effort, *runtime_objects.included(runtime, effort)])}", *what, *lent]

        calls = [made(effort)] if effort == "-O0" else [made("-O0", *_ONCE), made(effort, *_WITHOUT_ONCE)]
        runner = _VerilatorOfPorts(self.waves, *calls)
        self._build(runner, [*options, *(fst.options(tool, self.folder / "fst") if self.waves == "fst" else ())])
        runtime_objects.keep(runtime, sim)
        runtime_objects.keep_included(runtime, effort, sim, self._variables())

    def _build(self, runner: Runner, arguments: Sequence[str]) -> None:
        self._runner = runner
        with _environment(self._variables()):
            self._runner.log.setLevel(logging.ERROR)
            log = self.folder / "build.log"
            try:
                self._runner.build(
                    sources=[self.source, *self.properties],
                    hdl_toplevel=self.top,
                    build_dir=self.folder / "sim",
                    build_args=arguments,
                    timescale=_TIMESCALE,
                    waves=bool(self.waves),
                    log_file=log,
                )
            except (SystemExit, Exception) as error:
                tail = log.read_text(errors="replace")[-2000:] if log.is_file() else ""
                raise BuildError(f"{self.simulator} does not build {self.source.name}: {error}\n{tail}") from error

    def run(
        self,
        modules: Sequence[str],
        variables: Mapping[str, str],
        test_filter: str | None = None,
        *,
        folder: Path | None = None,
        arguments: Sequence[str] = (),
    ) -> Path:
        """Simulate the tests of cocotb modules and return the path of cocotb's results, which a crash can leave missing.

        Runs of one build have folders of their own; ``arguments`` are those of the design (``+name=value``).
        """
        assert self._runner is not None, "build first"
        folder = folder or self.folder
        folder.mkdir(parents=True, exist_ok=True)
        results = (folder / "cocotb.xml").resolve()
        # A crash of the simulator ends the runner; missing or incomplete results report it.
        with _environment({**self._variables(), **variables}), suppress(SystemExit, RuntimeError):
            self._runner.test(
                test_module=list(modules),
                hdl_toplevel=self.top,
                build_dir=self.folder / "sim",
                test_dir=folder,
                plusargs=list(arguments),
                results_xml=str(results),
                seed=variables.get(SEED, "1"),
                waves=bool(self.waves),
                timescale=_TIMESCALE if self.simulator == "icarus" else None,
                log_file=folder / "run.log",
                test_filter=test_filter,
            )
        return results

    def _variables(self) -> dict[str, str]:
        variables = {"COCOTB_LOG_LEVEL": "INFO", "COCOTB_ANSI_OUTPUT": "0", "OMP_NUM_THREADS": "1"}
        variables["COCOTB_REWRITE_ASSERTION_FILES"] = _TELLING
        if self.simulator == "verilator":
            variables |= dict(verilator.find().variables)
        # Within pytest cocotb's runner would check results by itself and end the process.
        variables["PYTEST_CURRENT_TEST"] = ""
        return variables


@contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
    """Set these variables for a ``with`` block; empty ones are removed."""
    before = {name: os.environ.get(name) for name in variables}
    try:
        for name, value in variables.items():
            if value:
                os.environ[name] = value
            else:
                os.environ.pop(name, None)
        yield
    finally:
        for name, old in before.items():
            if old is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = old
