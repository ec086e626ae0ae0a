"""Compiled kernels as Python functions without checks: tensors must be contiguous, on the CPU, and of the right size."""

from __future__ import annotations

import ctypes
import functools
import re
from collections.abc import Callable
from typing import Any

import torch
from cdu_tools import cache
from torch import Tensor

from actcodec.backends.native.build import library, sources

#: Argument in place of an optional tensor.
NOTHING = 0
_Type = type["ctypes._SimpleCData[Any]"]
_TYPES: dict[str, _Type] = {
    "int": ctypes.c_int,
    "int64_t": ctypes.c_int64,
    "uint32_t": ctypes.c_uint32,
    "float": ctypes.c_float,
    "double": ctypes.c_double,
    "bool": ctypes.c_bool,
}
_FUNCTION = re.compile(r"^(void|bool|int64_t) (\w+)\(([^)]*)\) \{", re.MULTILINE)


def signatures(source: str) -> dict[str, tuple[list[_Type], _Type | None]]:
    """Return argument types and result type of each function that a C++ source defines after ``extern "C"``, by name.

    Every pointer is a ``void*``. Raises KeyError for a type of no argument of a kernel.
    """
    exported = source.partition('extern "C" {')[2]
    return {
        name: ([_type(argument) for argument in arguments.split(",")], _TYPES.get(result))
        for result, name, arguments in _FUNCTION.findall(exported)
    }


def _type(argument: str) -> _Type:
    return ctypes.c_void_p if "*" in argument else _TYPES[argument.split()[0]]


class Kernels:
    """Functions of the shared library, which is compiled when needed.

    Raises the errors of :func:`~actcodec.backends.native.build.library`.
    """

    def __init__(self) -> None:
        # torch is loaded by now: its OpenMP runtime, of which a process should have one, is found before any other.
        compiled = cache.load_library(library())
        self._functions = {}
        for source in sources().values():
            for name, (arguments, result) in signatures(source).items():
                function = getattr(compiled, name)
                function.argtypes, function.restype = arguments, result
                self._functions[name] = function

    def __reduce__(self) -> tuple[Callable[[], Kernels], tuple[()]]:
        """Return a call that, in the process of a copy by pickle or :mod:`copy`, gets the functions of that process."""
        return kernels, ()

    def __call__(self, name: str, *arguments: Tensor | float) -> int:
        """Call a kernel with torch's number of threads as its last argument; tensors become pointers to their data."""
        plain = [part if isinstance(part, (int, float)) else part.data_ptr() for part in arguments]
        return int(self._functions[name](*plain, torch.get_num_threads()) or 0)


@functools.cache
def kernels() -> Kernels:
    """Return the kernels, loaded once per process."""
    return Kernels()


def loaded() -> bool:
    """Return whether this process has loaded the kernels, so that code without a chosen backend can use them at no cost."""
    return kernels.cache_info().currsize > 0
