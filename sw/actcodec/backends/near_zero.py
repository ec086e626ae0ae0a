"""Tell by the kernels of a tensor's device that no channel is far from zero."""

from __future__ import annotations

from cdu_spec.matrix_view import MatrixView
from torch import Tensor

from actcodec.backends.backend import Backend, Ending, Nearness
from actcodec.backends.job import Scaling
from actcodec.backends.native import kernels, statistics
from actcodec.backends.triton.available import computes_on
from actcodec.golden.near_zero import channel_views

#: Least rank of tensors whose axis 1 counts channels.
_VIEWED_RANK = 3


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


def tells_channels(x: Tensor, view: MatrixView) -> bool:
    """Return whether the statistics of a view's channels tell of axis 1 of ``x``, which counts channels."""
    return x.ndim >= _VIEWED_RANK and view.channels in (1, x.shape[1])


def begin_near_zero(backend: Backend, x: Tensor) -> Nearness | None:
    """Begin :func:`surely_near_zero` for all channels of contiguous ``x``.

    None for a backend that computes on the host, or has no kernels, and for a tensor without channels.
    """
    begun = [near for view in channel_views(x.shape) if (near := backend.begin_near_zero(x.view(view))) is not None]
    return Nearness(begun[0].largest, lambda *below: all(near.holds(*below) for near in begun)) if begun else None


def begin_scaled(backend: Backend, x: Tensor, view: MatrixView, scaling: Scaling) -> Ending | None:
    """Begin to compress contiguous ``x`` as :meth:`Backend.begin_scaled` does, if no channel is far from zero."""
    told = tells_channels(x, view)
    end = backend.begin_scaled(x, view, scaling, near_zero=told)
    near = None if told or end is None else begin_near_zero(backend, x)
    if end is None or near is None:
        return end

    def ended() -> tuple[Tensor, Tensor] | None:
        found = end()
        return found if near.holds() else None

    return ended
