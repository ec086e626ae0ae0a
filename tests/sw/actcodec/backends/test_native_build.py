"""Compilation of the kernels: once, and with a clear message when it fails."""

import os
import re
import subprocess
import sys

import actcodec
import numpy as np
import pytest
import torch
from actcodec.backends.native import build
from actcodec.golden import gmc, zvc
from cdu_tools import cache
from cdu_tools.errors import MissingToolError, UserError

_PACK = """
#include <cstdio>
#include <cstdlib>
#include "gmc.h"
#include "zvc.h"
using Coder = cdu::CODER;
int main() {
    int8_t q[64], back[Coder::TOGETHER][64];
    uint8_t out[Coder::LONGEST + Coder::SLACK];
    while (std::fread(q, 1, 64, stdin) == 64) {
        int size = int(Coder::pack(q, out) - out);
        const uint8_t* packed[Coder::TOGETHER];
        std::fill_n(packed, Coder::TOGETHER, out);
        Coder::unpack(packed, out + size, back);
        if (Coder::length(out) != size) std::abort();
        for (auto& block : back)
            if (std::memcmp(q, block, 64)) std::abort();
        std::fwrite(out, 1, size, stdout);
    }
}
"""


def test_nothing_is_compiled_twice(monkeypatch):
    first = build.library()
    compiled = []
    run = subprocess.run
    monkeypatch.setattr(subprocess, "run", lambda command, **options: compiled.append(command) or run(command, **options))
    assert build.library() == first
    assert all("-shared" not in command for command in compiled)


def _compiler(tmp_path, monkeypatch, most=None):
    """Install a compiler that logs its sources and fails after ``most`` of them; return a function that reads the log."""
    log, program = tmp_path / f"log-{most}", tmp_path / f"c++-{most}"
    stop = "" if most is None else f"[ $(wc -l < {log}) -gt {most} ] && exit 1\n"
    program.write_text(
        f'#!/bin/sh\ncase "$*" in *" -c "*) echo "$*" >> {log}\n{stop}sleep .1;; esac\n'
        'case "$*" in *-o*) for last in "$@"; do :; done; echo made > "$last";; *) echo macros;; esac\n'
    )
    program.chmod(0o755)
    log.touch()
    monkeypatch.setenv("CXX", str(program))
    monkeypatch.setenv(cache.FOLDER_VARIABLE, str(tmp_path / "cache"))
    return lambda: [re.search(r"\S+\.cpp", line)[0] for line in log.read_text().splitlines()]


def test_a_compilation_that_was_ended_goes_on_where_it_was(monkeypatch, tmp_path):
    """Check that object files are cached one by one and not compiled again."""
    before = _compiler(tmp_path, monkeypatch, most=5)
    with pytest.raises(UserError, match="cannot be compiled"):
        build.library()
    made = len(list((tmp_path / "cache").glob("native-object-*")))
    assert 0 < made <= 5  # two compilers may count each other
    assert not list((tmp_path / "cache").glob("native-[0-9a-f]*"))
    after = _compiler(tmp_path, monkeypatch)
    assert build.library().is_file()
    assert len(after()) == len(build._SOURCES) - made
    assert set(before()) | set(after()) == set(build._SOURCES)


def test_one_changed_source_is_compiled_alone(monkeypatch, tmp_path):
    compiled = _compiler(tmp_path, monkeypatch)
    build.library()
    assert sorted(compiled()) == sorted(build._SOURCES)
    read = type(build.files("actcodec")).read_text
    monkeypatch.setattr(
        type(build.files("actcodec")),
        "read_text",
        lambda path, **options: read(path, **options) + "// changed" * (path.name == "signs.cpp"),
    )
    build.library()
    assert compiled()[len(build._SOURCES) :] == ["signs.cpp"]


@pytest.mark.parametrize("seconds", [0.0, 60.0])
def test_a_long_compilation_says_how_far_it_is(monkeypatch, tmp_path, capfd, seconds):
    _compiler(tmp_path, monkeypatch)
    monkeypatch.setattr(build, "_SILENT_SECONDS", seconds)
    build.library()
    lines = capfd.readouterr().err.splitlines()
    count = len(build._SOURCES)
    last = f"compiling the native kernels, once on this machine: {count} of {count} files are ready"
    assert lines[-1:] == ([] if seconds else [last])
    assert build.library().is_file()
    assert not capfd.readouterr().err


def test_another_source_is_another_library(monkeypatch, tmp_path):
    monkeypatch.setenv(cache.FOLDER_VARIABLE, str(tmp_path))
    made = []
    monkeypatch.setattr(cache, "entry", lambda kind, ingredients, make: made.append(ingredients) or tmp_path)
    build.library()
    monkeypatch.setattr(build, "constants", lambda: "// other")
    build.library()
    assert made[0] != made[1]


def test_missing_compiler(monkeypatch):
    monkeypatch.setenv("CXX", "no-such-compiler")
    with pytest.raises(
        MissingToolError,
        match=r"no-such-compiler of \$CXX, which .* needs, is not installed: add it with .*`apt-get install g\+\+`",
    ):
        build.library()
    monkeypatch.delenv("CXX")
    monkeypatch.setenv("PATH", "")
    with pytest.raises(MissingToolError, match="a C\\+\\+ compiler, which backend 'native' needs, is not installed"):
        build.library()


def test_compiler_that_fails(monkeypatch, tmp_path):
    program = tmp_path / "c++"
    program.write_text("#!/bin/sh\necho 'values.h:1: error: no such thing' >&2\nexit 1\n")
    program.chmod(0o755)
    monkeypatch.setenv("CXX", str(program))
    with pytest.raises(UserError, match=r"cannot be compiled by .*no such thing.*use another"):
        build.library()


@pytest.mark.parametrize(("coder", "encode"), [("Zvc", zvc.encode), ("Gmc", lambda blocks: gmc.encode(blocks)[0])])
def test_packing_on_a_machine_without_bit_extraction(tmp_path, coder, encode):
    """Check the code for machines without bit extraction, an instruction that most test machines have."""
    (tmp_path / "constants.h").write_text(build.constants())
    for name in ("values.h", "coded_blocks.h", "zvc.h", "gmc.h"):
        (tmp_path / name).write_text((build.files(build.__package__) / name).read_text())
    (tmp_path / "pack.cpp").write_text(_PACK.replace("CODER", coder))
    options = ["-O1", "-std=c++20", "-Wno-psabi", "pack.cpp", "-o", "pack"]
    subprocess.run([build.compiler(), *options], cwd=tmp_path, check=True)
    blocks = np.random.default_rng(0).integers(-128, 128, (200, 64)).astype(np.int8)
    blocks[np.random.default_rng(1).random(blocks.shape) < np.linspace(0, 1, 200)[:, None]] = 0
    blocks[1::2] = 0
    blocks[1::2, 0] = np.arange(-128, 128)[::2][:100]  # after noise in the same memory; -128 takes a long body
    packed = subprocess.run([tmp_path / "pack"], input=blocks.tobytes(), capture_output=True, check=True).stdout
    assert packed == encode(torch.from_numpy(blocks)).numpy().tobytes()


def test_unknown_backends_are_named():
    with pytest.raises(UserError, match="unknown backend 'fast': use torch, native"):
        actcodec.codec("sfpr", backend="fast")


_ANY_MACHINE = """
import actcodec, torch
from actcodec.backends.native import build
build._OPTIONS = tuple(option for option in build._OPTIONS if not option.startswith("-march"))
names = ("sfpr+zvc", "jpeg-act", "division", "autoquantz", "blpa-float", "blpa-coded", "cusz", "acgc-quantz", "division-float")
for name in names:
    for shape in ((2, 3, 9, 17), (4, 8, 16, 16)):
        x = torch.randn(shape, generator=torch.Generator().manual_seed(0)) * 3
        golden, native = actcodec.codec(name), actcodec.codec(name, backend="native")
        expected, found = golden.compress(x), native.compress(x)
        assert found.nbytes == expected.nbytes, name
        assert torch.equal(native.decompress(found), golden.decompress(expected)), name
"""


@pytest.mark.campaign
def test_kernels_of_a_machine_with_no_more_than_it_must_have(tmp_path):
    """Check that kernels compiled without -march=native give the same values."""
    environment = {**os.environ, cache.FOLDER_VARIABLE: str(tmp_path)}
    subprocess.run([sys.executable, "-c", _ANY_MACHINE], env=environment, check=True)
