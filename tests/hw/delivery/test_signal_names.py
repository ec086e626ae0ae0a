"""Names in the Verilog are those of the source, on every Python.

Amaranth looks for the name of a signal in the byte code behind the call that makes it. It finds the same in all versions of
CPython where the call is all that an assignment to one name assigns; ``a, b = Signal(), Signal()`` is named by some only.
"""

import ast
import os
import shutil
import subprocess
import sys
import textwrap
from functools import cache
from itertools import islice
from pathlib import Path

import amaranth
import cdu
import cdu_spec
import cdu_tools
import cdu_verif
import pytest
from amaranth import tracer
from amaranth.hdl import Signal
from amaranth.hdl._ir import Fragment
from amaranth.hdl._mem import MemoryData
from cdu.delivery import blocks, verilog
from cdu.parts.ram import Delivery
from cdu_spec import CONFIGS, CduConfig

#: Folders in whose files all calls are looked at, whether they are made or not.
SOURCES = [Path(package.__path__[0]) for package in (cdu, cdu_verif)]
#: Calls that ask Amaranth for a name, as the source has them.
NAMED = ("Signal", "Signal.like", "read_port", "write_port")
#: Versions of Python that the project supports and this is none of.
OTHERS = [f"3.{minor}" for minor in range(11, 14) if minor != sys.version_info.minor]

GENERATE = """\
import sys
from cdu.delivery import blocks, verilog
from cdu_spec import CduConfig
from cdu_tools import yosys
made = verilog.convert(blocks.BLOCKS[sys.argv[1]](CduConfig()), "made", build=yosys.engine(yosys.GENERATOR))
sys.stdout.write(made)
"""


def place(node):
    return node.lineno, node.end_lineno, node.col_offset, node.end_col_offset


def plainly_named(tree):
    """The places of all values that are assigned, as a whole, to one name or attribute, or first to an attribute."""
    found = set()
    for node in ast.walk(tree):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        one_name = len(targets) == 1 and isinstance(targets[0], ast.Name)
        # An attribute is stored before a name that follows in the same line can become one instruction with it.
        if targets and (one_name or isinstance(targets[0], ast.Attribute)) and node.value:
            found.add(place(node.value))
    return found


@cache
def named_in(path):
    return plainly_named(ast.parse(Path(path).read_text(encoding="utf-8")))


def unnamed_calls(text):
    """Lines with a call that asks for a name, has no argument ``name``, and is not all that an assignment assigns."""
    tree = ast.parse(text)
    named = plainly_named(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and place(node) not in named and not any(key.arg == "name" for key in node.keywords):
            function = ast.unparse(node.func)
            if function in NAMED or function.rpartition(".")[2] in NAMED:
                yield node.lineno


def position(frame):
    """The place of the call that a frame is in."""
    return next(islice(frame.f_code.co_positions(), frame.f_lasti // 2, None))


@pytest.fixture
def asked(monkeypatch):
    """Collects each place at which Amaranth looks for a name in byte code and the source does not say one plainly."""
    find, unclear = tracer.get_var_name, []

    def watched(depth=2, default=None):
        frame = sys._getframe(depth)
        path = frame.f_code.co_filename
        of_memory = isinstance(sys._getframe(1).f_locals.get("self"), MemoryData)  # which has its submodule's name
        if not of_memory and position(frame) not in named_in(path):
            unclear.append(f"{path}:{frame.f_lineno}")
        return find(depth=depth + 1, default=default)

    monkeypatch.setattr(tracer, "get_var_name", watched)
    return unclear


@pytest.mark.parametrize("folder", SOURCES, ids=lambda folder: folder.name)
def test_every_call_in_the_sources_that_needs_a_name_is_given_one(folder):
    files = sorted(folder.rglob("*.py"))
    assert len(files) > 100
    unnamed = [f"{path}:{line}" for path in files for line in unnamed_calls(path.read_text(encoding="utf-8"))]
    assert not unnamed, "give each signal an assignment of its own, or `name=`: " + ", ".join(unnamed)


@pytest.mark.parametrize(
    "config",
    [
        CduConfig(dma_bits=128),
        CduConfig(
            cdus=4, value_format="fp16", coders=("zvc", "gmc"), own_clocks=("packed",), reset_kind="async", duplex="half"
        ),
        CONFIGS["universal"],
        CduConfig(modes=("sfpr", "bypass", "mx"), reset_active="low", reset_kind="async"),
    ],
    ids=lambda config: f"{config.name}-{config.dma_bits}-{len(config.modes)}",
)
def test_units_ask_for_no_name_that_their_source_does_not_say(asked, config):
    elaborated(blocks.top(config))
    assert not asked, "name these signals by an assignment of their own, or by `name=`: " + ", ".join(sorted(set(asked)))


@pytest.mark.parametrize(
    "block", ["axi_write_master", "jpeg_encoder", "jpeg_decoder", "two_way_dct", "mx_encoder", "gmc_encoder"]
)
def test_blocks_ask_for_no_name_that_their_source_does_not_say(asked, block):
    elaborated(blocks.BLOCKS[block](CduConfig()))
    assert not asked


def elaborated(component):
    Fragment.get(component, Delivery("made")).prepare(verilog._directed_ports(component), hierarchy=("made",))


PLAIN = ["a = Signal(3)", "a: object = Signal(3)", "self.a = Signal(3)", "a = Signal(3, name='b')", "a = [Signal(name='b')]"]
UNCLEAR = [
    "a, b = Signal(), Signal()",
    "self.a, self.b = Signal(), Signal()",
    "a, b = (Signal() for _ in range(2))",
    "a = b = Signal()",
    "a = [Signal()]",
    "a = Signal() if self is not None else 0",
    "a = Signal() & 1",
    "self[0] = Signal()",
    "f = lambda: Signal()\na = f()",
]


@pytest.mark.parametrize("text", PLAIN)
def test_a_name_that_is_said_plainly_is_none_to_report(tmp_path, asked, text):
    assert list(unnamed_calls(text)) == []
    assert executed(tmp_path, text) == 1
    assert asked == []


@pytest.mark.parametrize("text", UNCLEAR)
def test_a_name_that_byte_code_decides_is_reported(tmp_path, asked, text):
    found = list(unnamed_calls(text))
    assert found
    assert executed(tmp_path, text) >= len(found)
    assert len(asked) >= len(found)


def executed(folder, text):
    """Signals that are made when a text is executed in a function with an argument ``self``."""
    path = folder / "planted.py"
    path.write_text(f"def made(self):\n{textwrap.indent(text, '    ')}\n")
    count = 0

    def counted(*arguments, **options):
        nonlocal count
        count += 1
        return Signal(*arguments, **options, src_loc_at=1)

    space = {"Signal": counted}
    exec(compile(path.read_text(), str(path), "exec"), space)
    space["made"](Holder())
    return count


class Holder(dict):
    """Holds signals."""


@pytest.mark.parametrize("version", OTHERS)
@pytest.mark.parametrize("block", ["alignment_buffer", pytest.param("control", marks=pytest.mark.campaign)])
def test_another_python_writes_the_same_bytes(version, block):
    python = other_python(version)
    if not python:
        pytest.skip(f"no Python {version} is found: `uv python install {version}` adds one")
    here = [sys.executable, "-c", GENERATE, block]
    # These packages, and those that they import, hold nothing that is compiled for one version of Python.
    folders = os.pathsep.join(str(Path(package.__path__[0]).parent) for package in (cdu, cdu_spec, cdu_tools, amaranth))
    shared = {"PYTHONPATH": folders, "PYTHONDONTWRITEBYTECODE": "1", "PYENV_VERSION": version}
    there = [python, *here[1:]]
    ours, theirs = (
        subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
        for command, environment in ((here, None), (there, os.environ | shared))
    )
    assert theirs == ours
    assert len(ours) > 10_000


def other_python(version):
    """A Python of this version that runs, or None."""
    python = shutil.which(f"python{version}")
    environment = os.environ | {"PYENV_VERSION": version}
    runs = python and subprocess.run([python, "-c", ""], env=environment, capture_output=True, check=False).returncode == 0
    return python if runs else None
