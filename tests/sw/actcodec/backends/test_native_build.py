"""Compilation of the kernels: once, and with a clear message when it fails."""

import os
import re
import subprocess
import sys
from pathlib import Path

import actcodec
import numpy as np
import pytest
import torch
from actcodec.backends.native import build, modes
from actcodec.backends.native import kernels as native
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


#: Processors of which each multiplies pairs of 16 bits by other instructions, and what such a processor calls itself.
_PROCESSORS = {"x86-64": "sse2", "x86-64-v3": "avx2", "x86-64-v4": "avx512bw", "x86-64-v4 -mavx512vnni": "avx512_vnni"}


def _near_halves():
    """Return a map (2, 2, 16, 24) of which products with the scales of its channels are halves, or almost."""
    channels = []
    for largest in (2.0, 3.0):  # the scales are a power of two and a number of 24 bits
        halves = (torch.arange(-96, 96).view(8, 24) + 0.5) / (128 / largest)
        below, above = (torch.nextafter(halves, torch.tensor(end)) for end in (-4.0, 4.0))
        one = torch.cat([halves, below, above, -halves]).view(2, 16, 24)
        one[0, 0, 0] = largest
        channels.append(one)
    return torch.stack(channels, 1)


@pytest.mark.parametrize("processor", _PROCESSORS)
def test_every_width_of_vectors_gives_the_golden_bytes(processor, tmp_path, monkeypatch):
    """Check the kernels of modes sfpr and jpeg-act as other processors than this one have them."""
    if not re.search(rf"\b{_PROCESSORS[processor]}\b", Path("/proc/cpuinfo").read_text()):
        pytest.skip(f"this processor has no {_PROCESSORS[processor]}")
    folder = build.files(build.__package__)
    (tmp_path / "constants.h").write_text(build.constants())
    kept = ("jpeg_act.cpp", "sfpr.cpp")
    for name in (*build._HEADERS, *kept):
        (tmp_path / name).write_text((folder / name).read_text())
    options = [option for option in build._OPTIONS if option not in ("-O3", "-march=native")]
    options += ["-O1", *f"-march={processor}".split(), "-shared", *kept, "-o", "kernels.so"]
    subprocess.run([build.compiler(), *options], cwd=tmp_path, check=True)
    native.kernels()  # the statistics are those of this processor, and are kept
    monkeypatch.setattr(native, "library", lambda: tmp_path / "kernels.so")
    monkeypatch.setattr(native, "sources", lambda: {name: (tmp_path / name).read_text() for name in kept})
    others = native.Kernels()
    called = []
    monkeypatch.setattr(modes, "kernels", lambda: lambda name, *job: called.append(name) or others(name, *job))
    odd = torch.randn(3, 2, 13, 21, generator=torch.Generator().manual_seed(0)) * 3
    odd[0, 0, 0, :3] = torch.tensor([torch.nan, torch.inf, -torch.inf])
    for x in (odd, _near_halves()):
        golden, found = (
            actcodec.codec("sfpr", backend=backend, nonfinite="saturate", S=1.0, scale_bits=24)
            for backend in ("torch", "native")
        )
        packed = golden.compress(x)
        assert found.compress(x).to_bytes() == packed.to_bytes()
        assert torch.equal(found.decompress(packed), golden.decompress(packed))
    # The inverse transform of the first two fits 16 bits between its passes, that of the last needs 64 bits.
    for name, precision in (("jpeg-gmc", (8, 0)), ("jpeg-act", (13, 1)), ("jpeg-gmc", (12, 2)), ("jpeg-act", (13, 4))):
        for x, rounding in (
            (odd, "half_away"),
            (odd.bfloat16(), "trunc"),
            (odd.half(), "trunc"),
            (_near_halves(), "half_away"),
        ):
            rules = {
                "const_bits": precision[0],
                "pass1_bits": precision[1],
                "rounding": rounding,
                "dqt": "uniform-8",
                "rec": 0.375,
            }
            golden, found = (
                actcodec.codec(name, backend=backend, nonfinite="saturate", S=1.0, **rules) for backend in ("torch", "native")
            )
            packed = golden.compress(x)
            assert found.compress(x).to_bytes() == packed.to_bytes()
            assert torch.equal(found.decompress(packed), golden.decompress(packed))
    assert set(called) == {"sfpr_compress", "sfpr_encode", "sfpr_decode", "jpeg_act_encode", "jpeg_act_decode"}


def test_unknown_backends_are_named():
    with pytest.raises(UserError, match="unknown backend 'fast': use torch, native"):
        actcodec.codec("sfpr", backend="fast")


_ANY_MACHINE = """
import actcodec, torch
from actcodec.backends.native import build
build._OPTIONS = tuple(option for option in build._OPTIONS if not option.startswith("-march"))
names = (
    *("sfpr+zvc", "jpeg-act", "jpeg-gmc", "division", "autoquantz", "blpa-float", "blpa-coded", "cusz", "acgc-quantz"),
    "division-float",
)
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
