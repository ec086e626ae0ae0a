"""The driver in C with a model of an engine, and of memory behind a cache that is not coherent with it; compilers, sanitizers.

`ring_model.c` is the model; it ends with 1 and a sentence on the first fault.
"""

import shutil
import subprocess
from pathlib import Path

import cdu_driver
import pytest
from cdu_spec.dma_documents import dma_c_header
from cdu_spec.register_documents import c_header

SOURCES = Path(cdu_driver.__file__).parent / "c"
MODEL = Path(__file__).with_name("ring_model.c")
COMPILERS = ("gcc", "clang")
#: Reads of STATUS after which the driver gives up.
POLLS = 200
SANITIZERS = ("-g", "-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
WARNINGS = ("-Wall", "-Wextra", "-Wconversion", "-Wsign-conversion", "-Wshadow", "-pedantic", "-Werror")


def _found(compiler):
    if shutil.which(compiler) is None:
        pytest.skip(f"there is no {compiler}")
    return compiler


def _header(folder, name):
    (folder / name).write_text(c_header() + dma_c_header(), encoding="utf-8")


@pytest.mark.parametrize("language", ["c99", "c11", "c2x", "c++11", "c++20"])
@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("source", ["dma.c", "example.c"])
def test_sources_compile_without_a_warning(tmp_path, source, compiler, language):
    _header(tmp_path, "mine.h")
    kind = ["-x", "c++"] if language.startswith("c++") else []
    command = [_found(compiler), *kind, f"-std={language}", *WARNINGS, '-DCDU_HEADER="mine.h"', f"-I{tmp_path}", "-c"]
    subprocess.run([*command, SOURCES / source, "-o", tmp_path / "out.o"], check=True)


def test_a_program_in_cpp_calls_the_driver_in_c(tmp_path):
    _header(tmp_path, "tiny.h")
    _found("g++")
    (tmp_path / "main.cpp").write_text(
        '#include "dma.h"\n'
        "uint32_t cdu_read(uint32_t) { return 0; }\n"
        "void cdu_write(uint32_t, uint32_t) {}\n"
        "void cdu_wait_interrupt() {}\n"
        "void cdu_memory_publish(const volatile void *, uint32_t) {}\n"
        "void cdu_memory_fetch(const volatile void *, uint32_t) {}\n"
        "int main() { return cdu_dma_open(nullptr) == CDU_DMA_NULL ? 0 : 1; }\n",
        encoding="utf-8",
    )
    includes = [f"-I{tmp_path}", f"-I{SOURCES}"]
    subprocess.run([_found("gcc"), *includes, "-c", SOURCES / "dma.c", "-o", tmp_path / "dma.o"], check=True)
    program = tmp_path / "program"
    subprocess.run(["g++", *includes, tmp_path / "main.cpp", tmp_path / "dma.o", "-o", program], check=True)
    subprocess.run([program], check=True)


@pytest.fixture(scope="module", params=COMPILERS)
def model(request, tmp_path_factory):
    """Run the model with these words; return its exit code and its output."""
    compiler, folder = _found(request.param), tmp_path_factory.mktemp("model")
    _header(folder, "tiny.h")
    command = [compiler, "-std=c11", *WARNINGS, *SANITIZERS, f"-DCDU_DMA_STOP_POLLS={POLLS}", f"-I{folder}", f"-I{SOURCES}"]
    program = folder / "model"
    subprocess.run([*command, MODEL, SOURCES / "dma.c", "-o", program], check=True)

    def run(*words):
        done = subprocess.run([program, *map(str, words)], capture_output=True, text=True, check=False)
        return done.returncode, done.stdout + done.stderr

    return run


@pytest.mark.parametrize("line", [0, 32, 64, 128])
@pytest.mark.parametrize("seed", range(4))
def test_every_call_may_be_misused(model, seed, line):
    """Null, closed, full, empty, a wrong ring, an engine that hangs, was reset or refuses: a result, and nothing is changed."""
    assert model("misuse", seed, line) == (0, "")


@pytest.mark.parametrize("log2", range(4))
@pytest.mark.parametrize("lines", [(0, 32), (0, 64), (32, 32), (64, 64), (64, 0), (128, 128), (256, 256)], ids=str)
def test_records_of_random_jobs_are_their_own(model, lines, log2):
    """Jobs, lost records and restarts of the host at random; the numbers of jobs wrap around 2**32."""
    for seed, first in ((1, 0), (2, 0xFFFF_FFF0), (3, 0x7FFF_FFFF)):
        assert model("traffic", seed, *lines, log2, first) == (0, "")


def test_records_that_share_a_cache_line_are_overwritten(model):
    """The model tells the purpose of a line for each record."""
    assert any(model("traffic", seed, 64, 32, 2, 0)[0] for seed in range(4))
