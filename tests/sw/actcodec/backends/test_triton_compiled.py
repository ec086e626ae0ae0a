"""Kernels of backend triton compile to machine code of GPUs, and compute floats as torch does.

Neither check needs a GPU. They find errors that the interpreter cannot: types that change in a loop, products fused with sums,
approximate divisions, numbers flushed to zero.
"""

import importlib
import json
import os
import pkgutil
import re
import subprocess
import sys

import pytest
import triton_launches
from triton_here import INTERPRET

triton = pytest.importorskip("triton")
pytestmark = pytest.mark.skipif(os.environ.get(INTERPRET) == "1", reason="compiles nothing in a process that interprets")
#: Instructions on floats that round otherwise than IEEE 754, or not at each operation.
_OTHER_FLOATS = re.compile(r"\bfma\.\S*f(?:32|64)|\.approx|\.full\.|\.ftz")
#: Constants of which zero leaves out a part of a kernel.
MAY_BE_NONE = ("group_units", "width")


def kernels():
    """Return the kernels of all modules, as (module, name)."""
    from actcodec.backends import triton as package

    found = set()
    for info in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
        module = importlib.import_module(info.name)
        found |= {(info.name, name) for name in vars(module) if name.endswith("_kernel")}
    return found


@pytest.fixture(scope="module")
def launches(tmp_path_factory):
    """Return the launches of kernels by codecs."""
    path = tmp_path_factory.mktemp("launches") / "launches.json"
    command = [sys.executable, triton_launches.__file__, str(path)]
    done = subprocess.run(command, env={**os.environ, INTERPRET: "1"}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(path.read_text())


def compiled(launch, architecture, options):
    """Return the PTX of a kernel for a launch, after assembling it to machine code."""
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    module, name, parameters = launch
    constants = {key: value for key, (kind, value) in parameters.items() if kind == "constexpr"}
    constants = {key: tuple(value) if isinstance(value, list) else value for key, value in constants.items()}
    if "sums" in constants or "integers" in constants:
        key = "sums" if "sums" in constants else "integers"
        constants[key] = getattr(triton.language, constants[key])
    signature = {key: kind for key, (kind, _) in parameters.items()}
    source = ASTSource(getattr(importlib.import_module(module), name), signature=signature, constexprs=constants)
    made = triton.compile(source, target=GPUTarget("cuda", architecture, 32), options=options)
    assert made.asm["cubin"]
    return made.asm["ptx"]


def choices(parameters):
    """Return the constants of a launch that say whether, and for some that say how many whether there are any."""
    kept = {key: value for key, (_, value) in sorted(parameters.items()) if isinstance(value, bool) or key in MAY_BE_NONE}
    return tuple((key, bool(value)) for key, value in kept.items())


@pytest.fixture(autouse=True)
def _own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))


def test_every_kernel_compiles(launches):
    from actcodec.backends.triton.launch import OPTIONS

    one_of_each = {(module, name, choices(parameters)): (module, name, parameters) for module, name, parameters in launches}
    assert {(module, name) for module, name, _ in one_of_each} == kernels()
    for launch in one_of_each.values():
        assert not _OTHER_FLOATS.findall(compiled(launch, 80, OPTIONS)), launch[:2]


@pytest.mark.campaign
def test_every_kernel_compiles_for_large_tensors(launches):
    """Check launches with sizes and positions that need 64 bits."""
    from actcodec.backends.triton.launch import OPTIONS

    for module, name, parameters in {launch[1] + launch[0]: launch for launch in launches}.values():
        wide = {key: ["i64" if kind == "i32" else kind, value] for key, (kind, value) in parameters.items()}
        if "integers" in wide:
            wide["integers"] = ["constexpr", "int64"]
        assert not _OTHER_FLOATS.findall(compiled((module, name, wide), 80, OPTIONS)), name


@pytest.mark.campaign
@pytest.mark.parametrize("architecture", [75, 80, 90, 100])
def test_every_launch_compiles(launches, architecture):
    from actcodec.backends.triton.launch import OPTIONS

    for launch in launches:
        assert not _OTHER_FLOATS.findall(compiled(launch, architecture, OPTIONS)), launch


def test_fusion_would_be_noticed(launches):
    from actcodec.backends.triton.launch import OPTIONS

    launch = next(launch for launch in launches if launch[0].endswith("groups") and launch[1] == "_values_kernel")
    assert _OTHER_FLOATS.findall(compiled(launch, 80, dict.fromkeys(OPTIONS, True)))


def test_launches_are_of_all_formats(launches):
    types = {kind for _, _, parameters in launches for kind, _ in parameters.values()}
    assert {"*fp32", "*i16", "*fp16", "constexpr"} <= types
