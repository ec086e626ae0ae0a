"""Compilation of the kernels, once per machine and version: a shared library in the cache, and an object file per source.

An object file enters the cache as soon as it is compiled, so that an interrupted compilation continues where it stopped.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from importlib.resources import files
from pathlib import Path
from typing import Any

from cdu_spec import affine, geometry, gmc, huffman, jpeg, modes, mx, randomness, sfpr
from cdu_tools import cache
from cdu_tools.compilers import cpp_compiler
from cdu_tools.errors import UserError
from cdu_tools.parallel import largest_first

from actcodec.golden import context_coder, lorenzo, run_length, shift_quantizer
from actcodec.golden.floating import scaled_rows, signs
from actcodec.golden.integer_coder import WIDTHS

_SOURCES = (
    *("sfpr.cpp", "jpeg_act.cpp", "affine.cpp", "fixed_steps.cpp", "sample_groups.cpp", "huffman.cpp", "channels.cpp"),
    *("step_copies.cpp", "predicted_steps.cpp", "context_coder.cpp", "fixed_point.cpp", "float_ranges.cpp", "pool_windows.cpp"),
    *("signs.cpp", "block_scales.cpp", "scaled_rows.cpp"),
)
_HEADERS = (
    *("channel_rows.h", "values.h", "coded_blocks.h", "zvc.h", "gmc.h", "affine.h", "bit_streams.h", "lane_moves.h"),
    *("transform.h", "whole_steps.h", "contexts.h"),
)
_LIBRARY = "kernels.so"
_CONTEXT_NUMBERS = (
    *("STREAMS", "LEAST_STEPS", "MOST_STEPS", "ZERO", "LEFT", "ABOVE", "MEDIAN", "CONTEXTS", "MOST_ACTIVITY", "DIRECT"),
    *("DIRECT_BITS", "TOKENS", "TABLE_BITS", "FIRST_STATE", "SAMPLED", "ENTRY_BITS", "LENGTH_BITS", "MANTISSA_BITS"),
    "LOG_BITS",
)
_GMC_NUMBERS = (
    *("GROUP_VALUES", "RAW_CLASS", "LAST_MASK_CLASS", "LAST_CLASS_CONTEXT", "A_BOTH_ZERO", "A_ZERO", "A_FIRST", "A_AFTER_ZERO"),
    *("B_BESIDE_ZERO", "B_FIRST", "SHORT_BYTES", "LONG_HEAD", "CATEGORY_BITS", "MAX_CATEGORY"),
    *("MAX_BODY_BYTES", "MAX_WRITTEN_BODY_BYTES"),
)
#: Options for standard floating point: products and sums are never fused, as they are two operations in torch.
_OPTIONS = (
    *("-O3", "-march=native", "-std=c++20", "-fPIC", "-fopenmp", "-Wall", "-Wextra", "-Wno-psabi"),
    *("-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math"),
)
_OBJECT = "kernel.o"
#: Time after which a compilation reports its progress.
_SILENT_SECONDS = 2.0


def compiler() -> str:
    """Return the C++ compiler of the kernels; raise MissingToolError without one."""
    return cpp_compiler("backend 'native'", ", or use backend 'torch'")


def constants() -> str:
    """Return the header with the numbers that the specification fixes."""
    numbers = {
        name: getattr(module, name)
        for module, names in (
            (geometry, ("LANES", "BLOCK_SIDE", "BLOCK_VALUES", "TILE_BLOCKS")),
            (sfpr, ("VALUE_MIN", "VALUE_MAX")),
            (scaled_rows, ("FULL_SCALE",)),
            (signs, ("LEAST_STEPS", "MOST_STEPS")),
            (shift_quantizer, ("COEFFICIENT_MIN", "COEFFICIENT_MAX")),
            (huffman, ("MAX_CODE_BITS",)),
            (jpeg, ("DC_MIN", "DC_MAX", "AC_LIMIT", "EOB", "ZRL", "ZRL_RUN", "MARKER")),
            (run_length, ("DC_BASE",)),
            (modes, ("MASK_BYTES", "MAX_BLOCK_BYTES", "LOW_BYTES", "STEP_BYTES")),
            (affine, ("BASE_BITS", "GROUP_VALUES", "MANTISSA_BITS", "MAX_EXPONENT", "FRACTION_BITS", "RECIPROCAL_SHIFT")),
            (affine, ("DECODED_BITS",)),
            (lorenzo, ("MAX_MAGNITUDE",)),
            (randomness, ("STATE_WORDS", "WORD_BITS", "SECOND_ROTATION")),
        )
        for name in names
    }
    numbers |= {f"DTYPE_{dtype.name}": int(dtype) for dtype in modes.Dtype}
    numbers |= {f"CODER_{coder.name}": int(coder) for coder in modes.Coder}
    numbers |= {f"MX_{name}": getattr(mx, name) for name in ("SCALE_BIAS", "SCALE_MOST", "SCALE_NAN")}
    numbers |= {"MX_VALUES": mx.MX_VALUES, "NVFP4_VALUES": mx.NVFP4_FORMAT.values, "NVFP4_BITS": mx.NVFP4_FORMAT.bits}
    numbers |= {f"GMC_{name}": getattr(gmc, name) for name in _GMC_NUMBERS}
    numbers |= {f"CONTEXT_{name}": getattr(context_coder, name) for name in _CONTEXT_NUMBERS}
    lines = ["#pragma once", "#include <cstdint>", "namespace cdu {"]
    lines += [f"constexpr int {name} = {value};" for name, value in numbers.items()]
    lists = {name: getattr(randomness, name) for name in ("ROUND_CONSTANTS", "ROTATIONS")} | {"INTEGER_WIDTHS": WIDTHS}
    lines += [f"constexpr int {name}[] = {{{', '.join(map(str, found))}}};" for name, found in lists.items()]
    for name in ("A", "B", "MASK"):
        lines += _code_words(f"GMC_{name}", getattr(gmc, f"{name}_CODES"))
    return "\n".join([*lines, "}  // namespace cdu", ""])


def _code_words(name: str, codes: gmc.Codes) -> list[str]:
    """Return value, first bit lowest, and length of each code word, and the bits of the longest, as C++."""
    words = [[f"{{{gmc.number(word)}, {len(word)}}}" for word in row] for row in codes]
    rows = ", ".join(f"{{{', '.join(row)}}}" for row in words)
    return [
        f"constexpr uint8_t {name}_CODES[{len(codes)}][{len(codes[0])}][2] = {{{rows}}};",
        f"constexpr int {name}_BITS = {gmc.longest(codes)};",
    ]


def sources() -> dict[str, str]:
    """Return the C++ sources of the kernels by name."""
    return {name: files(__package__).joinpath(name).read_text(encoding="utf-8") for name in _SOURCES}


def library() -> Path:
    """Return the path of the compiled kernels; compile them (some seconds) if the cache has none for this machine.

    After two seconds lines on standard error report how many files are compiled. Files that an interrupted compilation finished
    stay in the cache.

    Raises MissingToolError without a compiler, UserError for one that fails or a cache that cannot be written.
    """
    program = compiler()
    headers = {name: files(__package__).joinpath(name).read_text(encoding="utf-8") for name in _HEADERS}
    texts = sources() | headers
    texts["constants.h"] = constants()
    # The compiler's own macros show the meaning of -march=native and its version.
    machine = _run([program, "-march=native", "-dM", "-E", "-x", "c++", os.devnull])

    def make(folder: Path) -> None:
        with _Progress(len(_SOURCES)) as progress:

            def compiled(source: str) -> str:
                path = _object(program, source, texts, machine)
                progress.step()
                return str(path)

            objects = largest_first(compiled, _SOURCES, lambda source: len(texts[source]))
            _run([program, *_OPTIONS, "-shared", *objects, "-o", _LIBRARY], folder)

    return cache.entry("native", [texts, _OPTIONS, machine], make) / _LIBRARY


def _object(program: str, source: str, texts: dict[str, str], machine: str) -> Path:
    """Return the object file of a source; compile it if the cache has none."""
    headers = {name: text for name, text in texts.items() if name not in _SOURCES}

    def make(folder: Path) -> None:
        for name, text in {**headers, source: texts[source]}.items():
            (folder / name).write_text(text, encoding="utf-8")
        _run([program, *_OPTIONS, "-c", source, "-o", _OBJECT], folder)

    return cache.entry("native-object", [source, texts[source], headers, _OPTIONS, machine], make) / _OBJECT


class _Progress:
    """Reports the number of compiled files on standard error, from :data:`_SILENT_SECONDS` on."""

    def __init__(self, total: int) -> None:
        self._total, self._done, self._loud = total, 0, False
        self._lock = threading.Lock()
        self._timer = threading.Timer(_SILENT_SECONDS, self._begin)
        self._timer.daemon = True

    def __enter__(self) -> _Progress:
        self._timer.start()
        return self

    def __exit__(self, *raised: Any) -> None:
        self._timer.cancel()

    def step(self) -> None:
        """Count one more compiled file."""
        with self._lock:
            self._done += 1
            self._say()

    def _begin(self) -> None:
        with self._lock:
            self._loud = True
            self._say()

    def _say(self) -> None:
        if self._loud:
            print(
                f"compiling the native kernels, once on this machine: {self._done} of {self._total} files are ready",
                file=sys.stderr,
                flush=True,
            )


def _run(command: list[str], folder: Path | None = None) -> str:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        lines = done.stderr.strip().splitlines()
        reason = next((line for line in lines if "error" in line), lines[-1] if lines else f"exit code {done.returncode}")
        raise UserError(f"backend 'native' cannot be compiled by {command[0]} ({reason}): use another $CXX, or backend 'torch'")
    return done.stdout
