"""Compiled kernels as Python functions without checks: tensors must be contiguous, on the CPU, and of the right size."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable

import torch
from cdu_tools import cache
from torch import Tensor

from actcodec.backends.native.build import library

_POINTER, _LONG, _INT, _FLOAT, _BOOL = ctypes.c_void_p, ctypes.c_int64, ctypes.c_int, ctypes.c_float, ctypes.c_bool
_SEED = ctypes.c_uint32
_DOUBLE = ctypes.c_double
#: Argument in place of an optional tensor.
NOTHING = 0
_CHANNELS = (_POINTER, _INT, _LONG, _LONG, _LONG)
_CELLS = (*(_LONG,) * 4, *(_POINTER,) * 4)
_RANGES = (_POINTER, _INT, _LONG, _LONG, *_CELLS, _POINTER)
_PREDICTED = (*(_LONG,) * 6, _POINTER, _BOOL, _INT)
#: Parameters of each function as in its source, without the number of threads, which always comes last; and its result.
_SIGNATURES = {
    "channel_maxima": ((_POINTER, _INT, _LONG, _LONG, _LONG, _POINTER), _BOOL),
    "residual_maxima": ((_POINTER, _INT, _LONG, _LONG, _LONG, _LONG, _POINTER, _POINTER), None),
    "sfpr_encode": ((_POINTER, _INT, _LONG, _LONG, _LONG, _POINTER, _POINTER), None),
    "sfpr_decode": ((_POINTER, _INT, _LONG, _LONG, _LONG, _POINTER, _POINTER), None),
    "sfpr_zvc_encode": ((_POINTER, _INT, _LONG, _LONG, _LONG, _LONG, _POINTER, _POINTER), _LONG),
    "sfpr_zvc_decode": ((_POINTER, _LONG, _INT, _LONG, _LONG, _LONG, _LONG, _POINTER, _POINTER), _BOOL),
    "brc_encode": ((_POINTER, _INT, _LONG, _POINTER), None),
    "brc_decode": ((_POINTER, _INT, _LONG, _POINTER), None),
    "jpeg_act_encode": (
        (_POINTER, _INT, _LONG, _LONG, _LONG, _POINTER, _POINTER, _INT, _INT, _POINTER, _BOOL, _INT, _POINTER),
        _LONG,
    ),
    "jpeg_act_decode": (
        (
            *(_POINTER, _LONG, _INT, _LONG, _LONG, _LONG, _POINTER, _POINTER, _INT, _INT, _POINTER, _POINTER),
            *(_INT, _BOOL, _POINTER),
        ),
        _BOOL,
    ),
    "division_encode": (
        (_POINTER, _INT, _LONG, _LONG, _LONG, _POINTER, _INT, _INT, _BOOL, _BOOL, _SEED, _POINTER),
        None,
    ),
    "division_decode": ((_POINTER, _INT, _LONG, _LONG, _LONG, _POINTER, _INT, _INT, _BOOL, _POINTER), _BOOL),
    "actnn_encode": ((_POINTER, _INT, _LONG, _FLOAT, _INT, _BOOL, _SEED, _POINTER), None),
    "actnn_decode": ((_POINTER, _INT, _LONG, _FLOAT, _INT, _POINTER), _BOOL),
    "fixed_encode": ((*_CHANNELS, _POINTER, _POINTER, _INT, _INT, _BOOL, _SEED, _POINTER), None),
    "fixed_decode": ((*_CHANNELS, _POINTER, _POINTER, _INT, _INT, _POINTER), None),
    "fixed_masked_encode": ((*_CHANNELS, _LONG, _POINTER, _INT, _INT, _BOOL, _SEED, _POINTER), _LONG),
    "fixed_masked_decode": ((_POINTER, _LONG, _INT, _LONG, _LONG, _LONG, _LONG, _POINTER, _INT, _INT, _POINTER), _BOOL),
    "channel_edges": ((*_CHANNELS, _POINTER, _POINTER), None),
    "channel_moments": ((*_CHANNELS, _POINTER, _POINTER, _INT, _POINTER, _POINTER), None),
    "squared_errors": ((*_CHANNELS, _POINTER, _DOUBLE, _POINTER), None),
    "step_codes": ((*_CHANNELS, _POINTER, _POINTER, _INT, _POINTER), None),
    "step_values": ((*_CHANNELS, _POINTER, _POINTER, _INT, _BOOL, _POINTER, _POINTER, _FLOAT, _POINTER), None),
    "predicted_counts": ((_POINTER, _INT, *_PREDICTED, _POINTER), None),
    "predicted_codes": ((_POINTER, _INT, *_PREDICTED, *(_POINTER,) * 6), None),
    "predicted_values": (
        (*(_POINTER,) * 4, *(_LONG,) * 4, _INT, *_PREDICTED, _BOOL, _POINTER, _POINTER, _FLOAT, _POINTER),
        _BOOL,
    ),
    "narrowed_bytes": ((_POINTER, _LONG, _POINTER), None),
    "fixed_point_kept": ((*_CHANNELS, *(_POINTER,) * 3, _SEED, _POINTER), None),
    "fixed_point_codes": ((*_CHANNELS, *(_POINTER,) * 3, _SEED, *(_POINTER,) * 6), None),
    "fixed_point_present": ((_POINTER, _LONG, _LONG, _POINTER), None),
    "fixed_point_values": ((_POINTER, _LONG, *_CHANNELS, *(_POINTER,) * 5, _FLOAT, _POINTER), None),
    "cell_means": ((_POINTER, _INT, _LONG, *_CELLS, _LONG, _POINTER), None),
    "range_edges": ((*_RANGES, _POINTER, _POINTER), None),
    "range_codes": ((*_RANGES, _POINTER, _POINTER, _INT, _BOOL, _SEED, _POINTER), None),
    "range_values": ((*_RANGES, _POINTER, _POINTER, _INT, _FLOAT, _POINTER), None),
    "group_edges": ((_POINTER, _INT, _LONG, _LONG, _LONG, _POINTER, _POINTER), None),
    "group_codes": (
        (_POINTER, _INT, _LONG, _LONG, _LONG, _POINTER, _POINTER, _POINTER, _BOOL, _SEED, _POINTER),
        None,
    ),
    "group_values": ((_POINTER, _INT, _LONG, _LONG, _LONG, _POINTER, _POINTER, _POINTER, _FLOAT, _POINTER), None),
    "codes_pack": ((_POINTER, _LONG, _INT, _POINTER), None),
    "codes_unpack": ((_POINTER, _LONG, _INT, _POINTER), None),
    "sign_counts": ((*_CHANNELS, _POINTER, _POINTER, _POINTER), None),
    "sign_differences": ((*_CHANNELS, _POINTER, _POINTER, _INT, _POINTER), None),
    "signed_values": (
        (*_CHANNELS, _POINTER, _INT, _POINTER, _BOOL, _FLOAT, _POINTER, _POINTER, _FLOAT),
        None,
    ),
    "window_positions": ((_POINTER, _LONG, _INT, _POINTER, _POINTER, _POINTER), _BOOL),
    "window_indices": ((_POINTER, _LONG, _INT, _POINTER, _POINTER, _POINTER), None),
    "mx_codes": ((_POINTER, _INT, _LONG, *(_INT,) * 4, _BOOL, _POINTER), None),
    "mx_values": ((_POINTER, _INT, _LONG, _INT, _POINTER, _FLOAT, _POINTER), None),
    "nvfp4_codes": ((_POINTER, _INT, _LONG, _FLOAT, *(_INT,) * 6, *(_POINTER,) * 3), None),
    "nvfp4_values": ((_POINTER, _INT, _LONG, _FLOAT, _POINTER, _POINTER, _FLOAT, _POINTER), None),
    "symbol_counts": ((_POINTER, _LONG, _POINTER), _BOOL),
    "entropy_encode": ((_POINTER, _LONG, _POINTER, _POINTER, _POINTER), _LONG),
    "entropy_decode": ((_POINTER, _LONG, _LONG, _POINTER, _POINTER, _POINTER, _POINTER, _POINTER), _BOOL),
}


class Kernels:
    """Functions of the shared library, which is compiled when needed.

    Raises the errors of :func:`~actcodec.backends.native.build.library`.
    """

    def __init__(self) -> None:
        # torch is loaded by now: its OpenMP runtime, of which a process should have one, is found before any other.
        compiled = cache.load_library(library())
        self._functions = {}
        for name, (parameters, result) in _SIGNATURES.items():
            function = getattr(compiled, name)
            function.argtypes, function.restype = (*parameters, _INT), result
            self._functions[name] = function

    def __reduce__(self) -> tuple[Callable[[], Kernels], tuple[()]]:
        """Return a call that, in the process of a copy by pickle or :mod:`copy`, gets the functions of that process."""
        return kernels, ()

    def __call__(self, name: str, *arguments: Tensor | float) -> int:
        """Call a kernel with torch's number of threads; tensors become pointers to their data."""
        plain = [part if isinstance(part, (int, float)) else part.data_ptr() for part in arguments]
        return int(self._functions[name](*plain, torch.get_num_threads()) or 0)


@functools.cache
def kernels() -> Kernels:
    """Return the kernels, loaded once per process."""
    return Kernels()


def loaded() -> bool:
    """Return whether this process has loaded the kernels, so that code without a chosen backend can use them at no cost."""
    return kernels.cache_info().currsize > 0
