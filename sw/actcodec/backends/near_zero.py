"""Tell by the kernels of a tensor's device that no channel is far from zero."""

from __future__ import annotations

from torch import Tensor

from actcodec.backends.native import kernels, statistics
from actcodec.backends.triton.available import computes_on


def surely_near_zero(channels: Tensor) -> bool:
    """Return whether kernels are certain that no channel of (outer, channels, inner), nor any of its maps, is far from zero.

    The bounds are those of :mod:`actcodec.golden.near_zero`. False on the CPU until a backend has loaded the native kernels,
    and where neither they nor Triton compute.
    """
    if channels.device.type == "cpu" and kernels.loaded():
        return statistics.near_zero(channels)
    if not computes_on(channels.device.type):
        return False
    from actcodec.backends.triton.scales import near_zero

    return near_zero(channels)
