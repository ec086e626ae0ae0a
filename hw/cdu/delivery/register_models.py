"""Register models made by PeakRDL (optional): a register model for UVM, HTML pages."""

from __future__ import annotations

import importlib
import shutil
import tempfile
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from cdu_spec.config import CduConfig
from cdu_spec.systemrdl import systemrdl
from cdu_tools.distribution import missing
from cdu_tools.errors import UserError
from cdu_tools.files import make_folder, write_whole
from cdu_tools.near_names import unknown

from cdu.delivery.verilog import top_name

#: Names of methods of class uvm_reg (IEEE 1800.2, section 18.4): a member of that name would hide the method.
UVM_METHODS = (
    "read",
    "write",
    "mirror",
    "update",
    "poke",
    "peek",
    "get",
    "set",
    "reset",
    "predict",
    "print",
    "copy",
    "compare",
)


def compiled(config: CduConfig, folder: Path, taken: Collection[str] = ()) -> Any:
    """Compile the registers of a unit with systemrdl-compiler and return the root of its tree.

    NAME.rdl is written into ``folder`` and must stay there as long as the tree is used. ``taken`` is that of
    :func:`cdu_spec.systemrdl.systemrdl`. Raises MissingToolError without the compiler.
    """
    compiler = _package("systemrdl").RDLCompiler()
    path = folder / f"{config.unit_name}.rdl"
    path.write_text(systemrdl(config, top_name(config.unit_name), taken), encoding="utf-8")
    compiler.compile_file(str(path))
    return compiler.elaborate()


def write_models(config: CduConfig, formats: Sequence[str], folder: Path) -> list[Path]:
    """Write register models into a folder, which is made if missing, and return their paths.

    ``formats`` are of :data:`FORMATS`. Raises UserError for an unknown format and MissingToolError without the packages of
    extra ``rdl``; nothing is written then.
    """
    for name in formats:
        if name not in FORMATS:
            raise UserError(unknown("format", name, FORMATS))
    with tempfile.TemporaryDirectory(prefix="cdu-registers-") as place:
        source, made = Path(place, "source"), Path(place, "made")
        source.mkdir()
        made.mkdir()
        for name in formats:
            FORMATS[name](config, source, made)
        return [_delivered(path, make_folder(folder) / path.name) for path in sorted(made.iterdir())]


def _uvm(config: CduConfig, source: Path, made: Path) -> None:
    """Write NAME_ral.sv, a package."""
    top = compiled(config, source, UVM_METHODS).top
    _package("peakrdl_uvm").UVMExporter().export(top, str(made / f"{config.unit_name}_ral.sv"))


def _html(config: CduConfig, source: Path, made: Path) -> None:
    """Write NAME_html, a site."""
    _package("peakrdl_html").HTMLExporter().export(compiled(config, source), str(made / f"{config.unit_name}_html"))


#: Functions that write a format, by its name.
FORMATS: Mapping[str, Callable[[CduConfig, Path, Path], None]] = {"uvm": _uvm, "html": _html}


def _package(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        raise missing(error.name, "rdl") from None


def _delivered(source: Path, target: Path) -> Path:
    if source.is_dir():
        shutil.copytree(source, target, dirs_exist_ok=True)
    else:
        write_whole(target, source.read_bytes())
    return target
