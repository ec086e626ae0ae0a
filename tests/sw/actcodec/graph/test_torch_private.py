"""Releases of torch that nobody has tried are refused in a sentence; kernels are those of this CPU and of this model."""

import os
import re
import subprocess
import sys
from pathlib import Path

import actcodec
import pytest
import torch
from actcodec.graph.torch_loops import loop_settings, prepare_loops
from actcodec.graph.torch_private import TESTED, _seeded, check_version
from actcodec.saved.allocations import allocations
from cdu_tools.errors import UserError
from torch import fx
from torch._inductor import config, inductor_prims
from torch._inductor.utils import run_fw_bw_and_get_code


def test_releases(monkeypatch):
    check_version()
    for version in ("2.10.1", "2.12.1", "2.15.0", "3.13.0+cpu"):
        monkeypatch.setattr(torch, "__version__", version)
        message = f"not tested with torch {version.replace('+', '.')}.*: use torch {' or '.join(TESTED)}, or"
        with pytest.raises(UserError, match=message):
            check_version()


def test_the_page_names_the_releases():
    page = " ".join((Path(__file__).parents[4] / "docs/user/plugin.md").read_text().split())
    assert f"It needs torch {' or '.join(TESTED)}" in page


def test_private_names_stand_in_two_files():
    folder = Path(actcodec.__file__).parent
    files = {*(folder / "graph").glob("*.py"), *(folder / "study").glob("*memory*.py")}
    files |= {folder / "study" / name for name in ("compiled_blocks.py", "live_storages.py")}
    files -= {folder / "graph" / name for name in ("torch_private.py", "torch_loops.py")}
    assert len(files) > 25
    private = re.compile(r"^(?!.*``).*\btorch\._(?!\w+``)", re.MULTILINE)
    assert not [(one.name, line) for one in files for line in private.findall(one.read_text())]


STEP = """
import actcodec, torch
from torch._dynamo.utils import counters

torch.manual_seed(0)
model = torch.nn.Linear(64, 64)
actcodec.compiled(model, "int8")
x = torch.randn(64, 64, requires_grad=True)
model(x).tanh().sum().backward()
print(counters["inductor"]["fxgraph_cache_hit"], x.grad.double().sum().item())
"""


@pytest.mark.campaign
def test_vectors_of_another_length_are_compiled_anew(tmp_path):
    def hits_and_gradient(capability):
        environment = os.environ | {"TORCHINDUCTOR_CACHE_DIR": str(tmp_path), "ATEN_CPU_CAPABILITY": capability}
        output = subprocess.run([sys.executable, "-c", STEP], env=environment, check=True, capture_output=True, text=True)
        hits, gradient = output.stdout.split()
        return int(hits), float(gradient)

    first, plain = hits_and_gradient("default")
    again, _ = hits_and_gradient("default")
    other, vectors = hits_and_gradient("avx2")
    assert (first, again > 0, other) == (0, True, 0)
    assert vectors == pytest.approx(plain, rel=1e-4)


SHARED = """
import os, sys, torch, actcodec
from torch import nn

def gradient(width, way):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(width, width), nn.GELU(), nn.Linear(width, width), nn.GELU(), nn.Linear(width, 8))
    x = torch.randn(64, width, requires_grad=True)
    way(model)
    model(x).square().mean().backward()
    return x.grad

widths = (32, 64, 48)
exact = [gradient(width, lambda model: model) for width in widths]
sys.setdlopenflags(os.RTLD_NOW | os.RTLD_GLOBAL)  # as import pyosys leaves it
torch.compile(lambda x: x.sin() + x.cos())(torch.randn(100))
for width, expected in zip(widths, exact):
    print(torch.cosine_similarity(gradient(width, actcodec.compiled).flatten(), expected.flatten(), 0).item())
"""


@pytest.mark.campaign
def test_loops_are_apart_where_libraries_shared_their_names():
    output = subprocess.run([sys.executable, "-c", SHARED], check=True, capture_output=True, text=True).stdout
    assert min(map(float, output.split())) > 0.999


LIBRARIES = """
import sys, torch, actcodec
from pathlib import Path

torch.manual_seed(0)
wide = [torch.nn.Linear(32, 32 * width) for width in (2, 3, 4, 5)]
down = [torch.nn.Linear(32 * width, 32) for width in (2, 3, 4, 5)]
model = torch.nn.Sequential(*(torch.nn.Sequential(up, torch.nn.GELU(), end) for up, end in zip(wide, down)))
x = torch.randn(64, 32)

def step(way):
    model.zero_grad()
    before = set(Path(sys.argv[1]).rglob("*.main.so"))
    way(model)
    model(x).square().mean().backward()
    found = torch.cat([parameter.grad.flatten() for parameter in model.parameters()])
    return found, len(set(Path(sys.argv[1]).rglob("*.main.so")) - before)

exact, _ = step(lambda model: None)
found, libraries = step(lambda model: actcodec.compiled(model, parts=1))
print(torch.cosine_similarity(found, exact, 0).item(), libraries)
"""


@pytest.mark.parametrize(("threads", "libraries"), [(1, 2), pytest.param(3, 6, marks=pytest.mark.campaign)])
def test_loops_of_a_graph_are_compiled_together(threads, libraries, tmp_path):
    environment = os.environ | {"TORCHINDUCTOR_CACHE_DIR": str(tmp_path), "TORCHINDUCTOR_COMPILE_THREADS": str(threads)}
    command = [sys.executable, "-c", LIBRARIES, str(tmp_path)]
    output = subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout
    cosine, found = map(float, output.split())
    assert cosine > 0.999
    assert found == libraries


def test_what_a_loop_reads_last_is_freed_before_the_next_loop():
    def product(x, y, weight):
        return torch.exp(y + (x @ weight).sum(0).max()) @ weight

    prepare_loops()
    size = 256
    given = torch.randn(2 * size, size) / size, torch.randn(size, size), torch.randn(size, size) / size
    peaks = []
    for settings in ({}, loop_settings()):
        torch._dynamo.reset()
        compiled = torch.compile(product, options={"allow_buffer_reuse": False, **settings})
        with torch.no_grad():
            torch.testing.assert_close(compiled(*given), product(*given))
            peaks.append(round(allocations(lambda call=compiled: call(*given)).peak / given[1].nbytes))
    assert peaks == [3, 2]


@torch.compiler.config.patch(force_disable_caches=True)
def test_loops_with_avx2_load_codes_from_where_they_are():
    if torch.backends.cpu.get_cpu_capability() not in ("AVX2", "AVX512"):
        pytest.skip("the processor has no AVX2")
    torch._dynamo.reset()
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.GELU(), torch.nn.Linear(256, 64))
    x = torch.rand(64, 64)
    found = []
    for setting in ({"cpp.simdlen": 256}, {"cpp.simdlen": 1}):
        model.zero_grad()
        torch._dynamo.reset()
        with config.patch(setting):
            compiled = actcodec.compiled(model, "int8")
            _, code = run_fw_bw_and_get_code(lambda: model(x).square().mean())
            compiled.close()
        found.append(("\n".join(code), [parameter.grad.clone() for parameter in model.parameters()]))
    (vectors, gradients), (_, exact) = found
    assert "::loadu_one_fourth(" in vectors
    assert not re.search(r"Vectorized<int8_t>::loadu\(.*\(8\)\)", vectors)
    for own, other in zip(gradients, exact, strict=True):
        torch.testing.assert_close(own, other, rtol=1e-4, atol=1e-6)


def test_random_operations_draw_the_numbers_of_their_seeds():
    """As in compiled code, where a backward may draw a forward's mask again."""
    graph = fx.Graph()
    seed = graph.placeholder("seed")
    graph.output(graph.call_function(inductor_prims.random, ([64], seed, "rand")))
    drawn = _seeded(fx.GraphModule({}, graph))
    assert torch.equal(drawn(torch.tensor(3)), drawn(torch.tensor(3)))
    assert not torch.equal(drawn(torch.tensor(3)), drawn(torch.tensor(4)))
