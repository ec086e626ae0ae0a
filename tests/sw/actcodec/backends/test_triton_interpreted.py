"""Backend triton without a device: interpreted on the CPU in separate processes, and refused in this one.

Triton decides once per process whether it interprets, when it is first imported, and other tests import it too.
"""

import os
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import actcodec
import pytest
import torch
import typer
from actcodec.backends import auto_backend
from actcodec.backends.torch_backend import TorchBackend
from actcodec.backends.triton import available
from catalog_facts import BACKEND
from cdu_cli import inventory
from cdu_tools.errors import MissingToolError, UserError
from triton_here import INTERPRET
from typer.testing import CliRunner

HERE = Path(__file__).parent
CONFORMANCE = HERE.parent / "codecs" / "test_codecs_conformance.py"
UNCODED = HERE.parents[2] / "benchmarks" / "test_uncoded.py"
CUDA = SimpleNamespace(device=torch.device("cuda"))


def interpreted(*arguments, **environment):
    """Run pytest with Triton's interpreter, require success, and return the output."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *map(str, arguments)]
    variables = {**os.environ, INTERPRET: "1", **environment}
    done = subprocess.run(command, env=variables, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize(
    "files",
    [
        (HERE / "test_triton_codecs.py",),
        (HERE / "test_triton_begun.py", HERE / "test_triton_blocks.py"),
        (HERE / "test_triton_payloads.py", HERE / "test_triton_training.py", HERE / "test_triton_launches.py", UNCODED),
    ],
    ids=lambda files: "-".join(file.stem for file in files),
)
def test_kernels(files):
    """Start few processes: each imports torch and Triton, which takes as long as some files."""
    pytest.importorskip("triton")
    assert "skipped" not in interpreted(*files)


def test_conformance():
    """Check row C6 in one format."""
    pytest.importorskip("triton")
    interpreted(CONFORMANCE, "-k", "c6_ and float32", **{BACKEND: "triton"})


@pytest.mark.campaign
@pytest.mark.parametrize("row", ["c1", "c2", "c3", "c4", "c6", "c9", "c10", "c11", "c14"])
def test_more_conformance(row):
    """Check the rows except C5 and C7, whose hundreds of sizes and thousands of groups would take the interpreter hours."""
    pytest.importorskip("triton")
    interpreted(CONFORMANCE, "-m", "", "-k", f"{row}_", **{BACKEND: "triton"})


@pytest.mark.skipif(os.environ.get(INTERPRET) == "1", reason="the interpreter takes tensors on the CPU")
@pytest.mark.parametrize("name", ["sfpr", "jpeg-gmc", "division", "actnn-sample"])
def test_tensors_on_the_cpu_are_refused(name):
    pytest.importorskip("triton")
    with pytest.raises(
        UserError, match="'triton' computes on GPUs, and a tensor is on cpu: use backend 'torch', or set TRITON"
    ):
        actcodec.codec(name, backend="triton").compress(torch.randn(1, 1, 8, 8))


@pytest.mark.skipif(torch.cuda.is_available(), reason="is about machines without CUDA")
def test_the_benchmark_says_that_there_is_no_device():
    command = [sys.executable, str(HERE.parents[3] / "benchmarks" / "gpu_speed.py")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.strip().endswith("measures a CUDA device, and torch sees none: run it where there is one")


def test_list_says_whether_it_is_here(monkeypatch):
    pytest.importorskip("triton")
    assert re.search(r"^  triton +[\d.]+, kernels for GPUs", listed(), re.MULTILINE)
    monkeypatch.setattr(available, "find_spec", lambda name: None)
    assert "triton  missing: the package triton of backend 'triton' is not installed" in listed()


def listed():
    app = typer.Typer(pretty_exceptions_enable=False, rich_markup_mode=None)
    inventory.register(app)
    return CliRunner().invoke(app, ["--all"]).output


def test_without_triton_an_error_says_what_to_add(monkeypatch):
    monkeypatch.setattr(available, "find_spec", lambda name: None)
    said = r"the package triton of backend 'triton' is not installed: add it with `pip install 'actcodec\[gpu\]'`"
    with pytest.raises(MissingToolError, match=said):
        actcodec.codec("sfpr", backend="triton")


def test_an_old_triton_is_refused(monkeypatch):
    triton = pytest.importorskip("triton")
    monkeypatch.setattr(triton, "__version__", "3.5.1")
    with pytest.raises(MissingToolError, match=r"needs triton 3\.6 or newer, and 3\.5\.1 is installed: use backend 'torch'"):
        actcodec.codec("sfpr", backend="triton")


def test_auto_takes_it_for_tensors_on_cuda_devices(monkeypatch):
    auto_backend._on_a_gpu.cache_clear()
    pytest.importorskip("triton")
    assert type(auto_backend.fastest(CUDA)).__name__ == "TritonBackend"
    auto_backend._on_a_gpu.cache_clear()
    monkeypatch.setattr(available, "find_spec", lambda name: None)
    assert type(auto_backend.fastest(CUDA)) is TorchBackend
    auto_backend._on_a_gpu.cache_clear()
