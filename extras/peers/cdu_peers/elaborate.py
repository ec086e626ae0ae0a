"""Conversion of any Verilog or SystemVerilog design to one flat module of Verilog-2005, the input of synthesis here.

Yosys' own reader accepts neither packages of types nor arrays at ports, so the text is read by slang, which is part of the
Yosys builds that this project installs. Nothing is mapped here: registers, multiplications and memories are kept.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from cdu_tools import yosys
from cdu_tools.errors import UserError, unreadable

#: Endings of the files that are copied from a folder searched for `include`.
HEADER_SUFFIXES = (".v", ".vh", ".sv", ".svh", ".h", ".inc")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_$]*")
_VALUE = re.compile(r"[A-Za-z0-9_'\"+-]*")
#: Characters that would end a word of a script.
_UNUSUAL = re.compile(r"[^\w.-]")
_PLACE = re.compile(r"\b(?:sources/\d+|include\d+)/")
#: The WebAssembly build has no threads. Older Verilog declares a port a second time as a wire.
_OPTIONS = ("--threads 1", "--single-unit", "--ignore-assertions", "--allow-merging-ansi-ports")
_INSTANCE = "cdu_instance_with_parameters"
_WRITE = "proc\nmemory_collect\nopt_clean\nwrite_verilog -noattr flat.v\n"


class DesignError(UserError):
    """Verilog that cannot be read or has no such top module; the message holds the first problem that the reader reports."""


def elaborate(
    files: Sequence[Path],
    top: str,
    include: Sequence[Path] = (),
    defines: Mapping[str, str] | None = None,
    parameters: Mapping[str, str] | None = None,
    build: yosys.Engine | None = None,
) -> str:
    """Return the module ``top`` with everything in it as the text of one flat Verilog-2005 module of that name.

    Parameters
    ----------
    files
        Verilog or SystemVerilog files, read as one text in this order, so that macros of one file hold in the next.
    top
        Module to elaborate.
    include
        Folders searched for ``include``, together with the folders in them: ``include "pkg/defs.svh"``.
    defines, parameters
        Macros, and parameters of the top module, by name.
    build
        The Yosys to use; default: the pinned one.

    Assertions are left out.

    Raises DesignError if a file is missing or does not parse, or if there is no module ``top``.
    """
    for path in files:
        if not path.is_file():
            raise DesignError(unreadable(path))
    for path in include:
        if not path.is_dir():
            raise DesignError(unreadable(path, folder=True))
    overrides = {_name(name): _value(value) for name, value in (parameters or {}).items()}
    options = [*_OPTIONS, *(f"-D {_name(name)}={_value(value)}" for name, value in (defines or {}).items())]
    with tempfile.TemporaryDirectory(prefix="cdu-elaborate-") as name:
        # The WebAssembly build reads nothing outside of its working directory.
        directory = Path(name)
        for index, folder in enumerate(include):
            copy_headers(folder, directory / f"include{index}")
            options.append(f"-I include{index}")
        for index, path in enumerate(files):
            copy = directory / "sources" / str(index) / _UNUSUAL.sub("_", path.name)
            copy.parent.mkdir(parents=True)
            shutil.copyfile(path, copy)
            options.append(str(copy.relative_to(directory)))
        read = f"read_slang {' '.join(options)}"
        script = f"{read} --top {_name(top)}{''.join(f' -G {name}={value}' for name, value in overrides.items())}\n{_WRITE}"
        if overrides:
            # The reader silently ignores -G for an unknown parameter; a parameter of an instance is checked.
            inside = ", ".join(f".{name}({value})" for name, value in overrides.items())
            (directory / "instance.sv").write_text(f"module {_INSTANCE};\n{top} #({inside}) unit();\nendmodule\n")
            script = f"{read} instance.sv --top {_INSTANCE}\ndesign -reset\n{script}"
        try:
            yosys.run(script, directory, build or yosys.engine(yosys.GENERATOR))
        except yosys.YosysError as error:
            raise DesignError(f"cannot read the Verilog of {top}: {_first_problem(error)}") from None
        return (directory / "flat.v").read_text(encoding="utf-8")


def copy_headers(folder: Path, copies: Path) -> None:
    """Copy a folder with all its subfolders, but only those files that end in one of :data:`HEADER_SUFFIXES`.

    Links are followed; a folder that is reached twice is copied once, so that circular links are harmless.
    """
    seen: set[Path] = set()
    for place, folders, names in os.walk(folder, followlinks=True):
        if (real := Path(place).resolve()) in seen:
            folders.clear()
            continue
        seen.add(real)
        copy = copies / Path(place).relative_to(folder)
        copy.mkdir(parents=True)
        for name in names:
            if (path := Path(place, name)).suffix in HEADER_SUFFIXES and path.is_file():
                shutil.copyfile(path, copy / name)


def _name(text: str) -> str:
    if not _NAME.fullmatch(text):
        raise DesignError(f"{text!r} is not a name of Verilog: use letters, digits, _ and $")
    return text


def _value(text: str) -> str:
    if not _VALUE.fullmatch(text):
        raise DesignError(f"the value {text!r} is not allowed: use a number of Verilog or a name")
    return text


def _first_problem(error: yosys.YosysError) -> str:
    """Return the first problem that the reader reported, ``NAME:LINE: problem``."""
    text = str(error).split(": ", 1)[1].splitlines()[0]
    return _PLACE.sub("", text).replace("ERROR: ", "", 1)
