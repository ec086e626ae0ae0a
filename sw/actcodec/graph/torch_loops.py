"""C++ loops of inductor on the CPU: their vectors, loads of codes and libraries. Names are private ones of torch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.util import module_from_spec, spec_from_file_location
from typing import Any

import torch

#: Values in a vector of AVX2, and its functions that load so many integers from where they are.
_LANES = 8
_LOADS = {torch.int8: "loadu_one_fourth", torch.uint8: "loadu_one_fourth", torch.int32: "loadu"}


def loop_settings() -> Mapping[str, Any]:
    """Return settings of inductor by which :func:`prepare_loops` tells the loops of this project from others.

    Inductor's cache of graphs does not ask for which vectors their C++ was written: processes that share a cache, on unlike
    CPUs or with unlike ``ATEN_CPU_CAPABILITY``, would run code for vectors of another size (torch 2.13). The length of a vector
    is therefore a setting, and settings are part of the cache's key.
    """
    from torch._inductor.cpu_vec_isa import pick_vec_isa

    return {"cpp.simdlen": pick_vec_isa().bit_width()}


def prepare_loops() -> None:
    """Change how inductor writes, compiles and loads loops wherever :func:`loop_settings` hold.

    Backward passes may be compiled long after forward passes; a setting is in force then, too.
    """
    _load_directly()
    _call_one_by_one()
    _compile_together()


@cache
def _load_directly() -> None:
    """Let loops with AVX2 load integers of 8 and 32 bits from where they are.

    Torch 2.13 copies them to the stack first, in parts; the load of the whole waits until the parts are written. A loop that
    decodes 8 bits and then calls GELU takes 3 times as long so.
    """
    from torch._inductor import config
    from torch._inductor.codegen.cpp import CppVecKernel
    from torch._inductor.cpu_vec_isa import VecAVX2

    kernels: Any = CppVecKernel
    original = kernels._get_vec_load_line

    def load(kernel: Any, var: str, index: Any, dtype: torch.dtype, load_mask: Any = None) -> str:
        line: str = original(kernel, var, index, dtype, load_mask)
        count = f", static_cast<int64_t>({_LANES}))"
        if config.cpp.simdlen and isinstance(kernel.vec_isa, VecAVX2) and dtype in _LOADS and line.endswith(count):
            return f"{line.removesuffix(count).replace('::loadu(', f'::{_LOADS[dtype]}(')})"
        return line

    kernels._get_vec_load_line = load


@cache
def _call_one_by_one() -> None:
    """Let each kernel of the schedule be a function of its own.

    Torch 2.13 writes kernels that follow each other as one function. All that they make is there before it is called, and all
    that they read last is freed after it.
    """
    from torch._inductor import config
    from torch._inductor.codegen.cpp import CppScheduling

    scheduling: Any = CppScheduling
    is_full = scheduling.ready_to_flush

    def ready(self: Any) -> bool:
        return bool(config.cpp.simdlen) or is_full(self)

    scheduling.ready_to_flush = ready


@dataclass(frozen=True)
class _Loop:
    """A function of C++ that waits for its compiler."""

    types: Sequence[str]  #: of its arguments
    source: str


@cache
def _compile_together() -> None:
    """Let one run of the C++ compiler, for each thread of inductor's, compile the loops of a graph.

    Torch 2.13 runs it for each loop. Of the 1.3 s that a run takes, the header that all loops include takes 0.9.
    """
    from torch._inductor import config
    from torch._inductor.async_compile import AsyncCompile, get_compile_threads
    from torch._inductor.codecache import CppPythonBindingsCodeCache

    compiler: Any = AsyncCompile
    libraries: Any = CppPythonBindingsCodeCache
    compile_one, wait = compiler.cpp_pybinding, compiler.wait

    def take(self: Any, types: Sequence[str], source: str) -> Any:
        return _Loop(types, source) if config.cpp.simdlen else compile_one(self, types, source)

    def compile_all(self: Any, scope: dict[str, Any]) -> None:
        loops = {name: value for name, value in scope.items() if isinstance(value, _Loop)}
        threads = get_compile_threads()
        groups = [group for first in range(threads) if (group := list(loops)[first::threads])]
        submit = self.submit if threads > 1 else None
        made = [libraries.load_async(_unit([loops[name] for name in group]), submit_fn=submit) for group in groups]
        for group, library in zip(groups, made, strict=True):
            first = library()
            scope.update({name: _function(first, number) for number, name in enumerate(group)})
        wait(self, scope)

    compiler.cpp_pybinding, compiler.wait = take, compile_all


def _entry(number: int) -> str:
    """Return the name of a function of a library; torch imports the first one by its own name."""
    return f"kernel_{number}" if number else "kernel"


def _unit(loops: Sequence[_Loop]) -> str:
    """Return a source with several loops, each in a namespace with torch's module around it.

    A loop of torch alone is visible from outside under the name ``kernel``. Where libraries share their names, as they do in
    Python after ``import pyosys``, the first one runs in place of the others; those made here cannot be seen.
    """
    from torch._inductor.codecache import CppPythonBindingsCodeCache as Libraries

    parts = []
    for number, loop in enumerate(loops):
        given = ", ".join(f"parse_arg<{kind.replace('const ', '')}>(args, {place})" for place, kind in enumerate(loop.types))
        module = Libraries.suffix_template.format(
            arg_len=len(loop.types),
            call_entry_func=Libraries.call_entry_function.format(given),
            entry_func=_entry(number),
            extra_parse_arg="",
        )
        function = loop.source.replace('extern "C"', "static")
        parts.append(f"namespace loop_{number} {{\n{function}\n{module}\n}}")
    source = "\n".join(parts)
    # Headers are included outside of the namespaces; a second time they are empty.
    headers = dict.fromkeys(line.strip() for line in source.splitlines() if line.lstrip().startswith("#include"))
    return "\n".join([*headers, source])


def _function(first: Any, number: int) -> Any:
    """Return a function of a library by its number and the module of its first."""
    entry = _entry(number)
    module = first
    if number:
        spec = spec_from_file_location(f"{first.key}.{entry}", first.__file__)
        assert spec is not None
        assert spec.loader is not None
        module = module_from_spec(spec)
        spec.loader.exec_module(module)
    return getattr(module, entry)
