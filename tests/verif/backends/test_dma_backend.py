"""Codecs on compiled RTL behind its DMA engine: tensors lie in memory, jobs are descriptors; the same bytes and values."""

import ctypes
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import actcodec
import numpy as np
import pytest
import torch
from actcodec.backends.job import compression_job
from actcodec.backends.torch_backend import TorchBackend
from actcodec.golden import sfpr
from actcodec.golden.blocks import by_channel
from actcodec.study.models import ResNet
from actcodec.training import compress_activations
from cdu.delivery import generator
from cdu.delivery.verilog import top_name
from cdu_driver.c_files import c_files
from cdu_spec import BitstreamError, CduConfig, UserError
from cdu_spec.matrix_view import MatrixView
from cdu_spec.modes import Dtype, Mode
from cdu_spec.register_types import Channel
from cdu_verif.backends.checked_backend import CheckedBackend
from cdu_verif.backends.compiled import library
from cdu_verif.backends.compiled.dma_backend import DmaBackend
from cdu_verif.backends.compiled.named import rtl
from cdu_verif.backends.compiled.suited import UnsuitedUnitError
from cdu_verif.backends.compiled.unit import CompiledUnit
from tools_here import needs_verilator
from torch import nn
from torch.nn import functional as F

INTEGRATION = Path(__file__).parents[3] / "docs" / "user" / "integration.md"
#: With the usual modes and mode mx, whose rows are the engine's as well.
CONFIG = CduConfig(dma_bits=128, modes=(*CduConfig().modes, "mx"))
EVERY_MODE = tuple(mode.label for mode in Mode)
SHAPES = ((1, 1, 1, 1), (2, 3, 8, 8), (3, 5, 7, 11), (1, 2, 13, 33), (7,), (5, 9), (2, 2, 3, 3, 3))


@pytest.fixture(scope="module")
def backend():
    """One unit for all tests: jobs of all kinds follow one another."""
    return DmaBackend(CONFIG)


def tensor(shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed)).relu()


@needs_verilator
@pytest.mark.parametrize("mode", CONFIG.modes)
def test_payloads_and_values_are_those_of_the_golden_model(backend, mode):
    assert_equal(backend, mode)


@pytest.mark.campaign  # `cdu verify` has such a unit behind its engine
@needs_verilator
@pytest.mark.parametrize("mode", EVERY_MODE)
def test_payloads_and_values_of_a_unit_with_every_mode(mode):
    assert_equal(DmaBackend(CONFIG.override(modes=EVERY_MODE)), mode)


def assert_equal(backend, mode):
    checked = CheckedBackend(backend)
    codec = actcodec.codec("mxint8" if mode == "mx" else mode, backend=checked)
    tried = [shape for shape in SHAPES if codec.takes(shape)]
    for seed, shape in enumerate(tried):
        codec.decompress(codec.compress(tensor(shape, seed)))
    assert checked.payloads == checked.tensors == len(tried) > 1


@needs_verilator
def test_a_strided_tensor_is_what_it_looks_like(backend):
    """The host brings it into one piece."""
    x = tensor((2, 8, 8, 12)).permute(0, 3, 1, 2)[:, 1:7]
    codec, golden = actcodec.codec("jpeg-act", backend=backend), actcodec.codec("jpeg-act")
    assert codec.compress(x).to_bytes() == golden.compress(x).to_bytes()


@needs_verilator
def test_a_network_trains_through_memory_as_on_the_golden_model(backend):
    def losses(through):
        torch.manual_seed(3)
        model = ResNet(channels=1, classes=10, width=8, depth=1, stages=2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
        found = []
        for _ in range(2):
            images, labels = torch.rand(2, 1, 16, 16), torch.randint(10, (2,))
            optimizer.zero_grad()
            with compress_activations(model, "jpeg-act", backend=through):
                loss = F.cross_entropy(model(images), labels)
            loss.backward()
            optimizer.step()
            found.append(loss.item())
        return found, [value.clone() for value in nn.Module.state_dict(model).values()]

    before = len(backend.took)
    checked = CheckedBackend(backend)
    (mine, weights), (theirs, expected) = losses(checked), losses("torch")
    assert mine == theirs
    assert all(torch.equal(one, other) for one, other in zip(weights, expected, strict=True))
    directions = [job.channel for job in backend.took[before:]]
    done = [directions.count(channel) for channel in Channel]
    assert done == [checked.payloads, checked.tensors], "something was not computed by the unit"
    assert min(done) > 16


@needs_verilator
def test_latency_costs_its_cycles_once(backend):
    """Bursts are under way together: a slow memory costs a job cycles at its ends, not at each burst."""
    x, codec = tensor((1, 4, 32, 32)), "sfpr"
    took = {}
    for latency in (0, 60):
        slow = DmaBackend(CONFIG, latency)
        actcodec.codec(codec, backend=slow).compress(x)
        (job,) = slow.took
        assert (job.channel, job.mode, job.values, job.payload_bytes) == (Channel.COMPRESS, Mode.SFPR, *2 * [x.numel()])
        assert job.waited > job.cycles
        took[latency] = job.cycles
    bursts = x.numel() * x.element_size() // (CONFIG.dma_bits // 8 * 16)
    assert 60 < took[60] - took[0] < 60 * bursts // 8


@needs_verilator
def test_a_payload_that_the_unit_finds_damaged_costs_its_own_job(backend):
    golden, codec = actcodec.codec("sfpr+zvc"), actcodec.codec("sfpr+zvc", backend=backend)
    packed = golden.compress(tensor((1, 2, 8, 16)))
    damaged = packed.payload.clone()
    damaged[0] ^= 0xFF  # other bits of the first mask: another number of values follows
    with pytest.raises(BitstreamError, match="corrupted stream"):
        codec.decompress(replace(packed, payload=damaged))
    assert torch.equal(codec.decompress(packed), golden.decompress(packed))


def test_what_engine_and_unit_cannot_do_is_refused():
    with pytest.raises(UserError, match="has no DMA engine: use a configuration with dma_bits"):
        DmaBackend(CduConfig())
    with pytest.raises(UserError, match="a latency of -1 cycles is not allowed: use 0 or more"):
        DmaBackend(CONFIG, -1)
    view = MatrixView.of((8, 8), Mode.SFPR)
    job, x = compression_job(view, Dtype.FP32, torch.ones(8)), torch.ones(8, 8)
    backend = DmaBackend(CONFIG)
    with pytest.raises(UserError, match="takes tensors, not beats"):
        backend.compress(job, x)
    with pytest.raises(UnsuitedUnitError, match="value_format = bf16, the job needs value_format = fp32"):
        DmaBackend(CONFIG.override(value_format="bf16")).compress_tensor(x, view, job)


def test_a_file_with_dma_bits_is_a_backend(tmp_path):
    (tmp_path / "dma.toml").write_text("dma_bits = 64\n", encoding="utf-8")
    found = rtl(str(tmp_path / "dma.toml"))
    assert isinstance(found, DmaBackend)
    assert found.config.dma_bits == 64


PLATFORM = """
#include "cdu_dma.h"
uint32_t (*read_hook)(uint32_t);
void (*write_hook)(uint32_t, uint32_t);
void (*wait_hook)(void);
uint32_t cdu_read(uint32_t address) { return read_hook(address); }
void cdu_write(uint32_t address, uint32_t value) { write_hook(address, value); }
void cdu_wait_interrupt(void) { wait_hook(); }
void cdu_memory_publish(const volatile void *memory, uint32_t bytes) { (void)memory; (void)bytes; }
void cdu_memory_fetch(const volatile void *memory, uint32_t bytes) { (void)memory; (void)bytes; }
"""


def compiled(folder, program):
    """A program in C with the driver and the header that `cdu generate` writes, as a library."""
    made = generator.kept(CONFIG)
    made.write(folder)
    for name, text in c_files(made.name, dma=True).items():
        (folder / name).write_text(text, encoding="utf-8")
    (folder / "platform.c").write_text(PLATFORM, encoding="utf-8")
    (folder / "program.c").write_text(program, encoding="utf-8")
    sources = ["cdu_dma.c", "platform.c", "program.c"]
    options = ["-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-shared", "-fPIC", "-I."]
    subprocess.run(["cc", *options, *sources, "-o", "program.so"], cwd=folder, check=True)
    return ctypes.CDLL(str(folder / "program.so"))


@needs_verilator
def test_the_c_program_of_the_integration_page_compresses_a_tensor(tmp_path):
    """The page's program and the driver in C, with the compiled unit and its memory as their platform."""
    if shutil.which("cc") is None:
        pytest.skip("there is no C compiler")
    (program,) = re.findall(r"^```c\n(.*?)^```", INTEGRATION.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    library_of_c = compiled(tmp_path, program)
    design = library.generated(CONFIG)
    unit, room, base = CompiledUnit(library.library(design), design.streams), np.full(0x2080, 0xA5, np.uint8), 0x12_3400_0000
    memory = room[-room.ctypes.data % 128 :][:0x2000]
    unit.memory(memory, base, 7)

    def wait():
        assert unit.run(100_000, until_interrupt=True) < 100_000, "no interrupt"

    word = ctypes.c_uint32
    hooks = {
        "read_hook": ctypes.CFUNCTYPE(word, word)(unit.read),
        "write_hook": ctypes.CFUNCTYPE(None, word, word)(unit.write),
        "wait_hook": ctypes.CFUNCTYPE(None)(wait),
    }
    for name, function in hooks.items():
        ctypes.c_void_p.in_dll(library_of_c, name).value = ctypes.cast(function, ctypes.c_void_p).value
    places = {name: int(place, 0) for name, place in re.findall(r"\b([A-Z]+) = (0x\w+|\d+)[, ]", program.partition("}")[0])}
    x, view = torch.randn(1, 4, 8, 32, generator=torch.Generator().manual_seed(1)), MatrixView.of((1, 4, 8, 32), Mode.SFPR)
    job = compression_job(view, Dtype.FP32, sfpr.scales(by_channel(x, view), 1.0, CONFIG.scale_bits)[0])
    golden = TorchBackend().compress_tensor(x, view, job).numpy()
    for place, content in (("TENSOR", x), ("SCALES", job.scales)):
        raw = content.numpy().view(np.uint8).ravel()
        memory[places[place] : places[place] + raw.size] = raw
    program_of_c = library_of_c.first_tensor
    program_of_c.argtypes = (ctypes.c_void_p, ctypes.c_uint64)
    assert program_of_c(memory.ctypes.data, base) == golden.size
    begin = places["PAYLOAD"]
    assert np.array_equal(memory[begin : begin + golden.size], golden)
    assert set(memory[begin + golden.size :]) == {0xA5}


def test_the_unit_of_the_integration_page_has_these_ports():
    made, name = generator.kept(CONFIG), CONFIG.override(modes=CduConfig.modes).unit_name
    assert (name, top_name(name)) == ("tiny_dma_bits_128", "cdu_tiny_dma_bits_128")
    ports = {port["name"] for port in made.manifest["ports"]}
    assert {name for name in ports if not name.startswith(("m_axi_", "s_axil_"))} == {"clk", "rst", "irq"}
