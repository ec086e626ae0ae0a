"""Backend ``auto``: uses the fastest backend on each tensor's device that produces the golden model's bytes."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Sequence

from cdu_spec.bitstream import Header
from cdu_spec.matrix_view import MatrixView
from cdu_tools.errors import MissingToolError, UserError
from torch import Tensor

from actcodec.backends.backend import Backend, Ending, Nearness, P, R
from actcodec.backends.job import Job, Scaling
from actcodec.backends.native.backend import NativeBackend
from actcodec.backends.torch_backend import TorchBackend
from actcodec.backends.triton.available import triton_backend


@functools.cache
def _on_the_cpu() -> Backend:
    """Return the native backend, which compiles its kernels once; without a compiler, warn once and return the golden model."""
    try:
        return NativeBackend()
    except UserError as error:
        warnings.warn(f"backend 'auto' computes by torch, which is slower: {error}", stacklevel=2)
        return TorchBackend()


@functools.cache
def _on_a_gpu() -> Backend:
    try:
        return triton_backend()
    except MissingToolError:
        return TorchBackend()


def fastest(x: Tensor) -> Backend:
    """Return ``native`` for tensors on the CPU, ``triton`` on CUDA devices, and the golden model where these are missing."""
    kinds = {"cpu": _on_the_cpu, "cuda": _on_a_gpu}
    return kinds.get(x.device.type, TorchBackend)()


class AutoBackend(TorchBackend):
    """Backend chosen by the device of each tensor; the choice changes no byte. The golden model computes jobs of beats."""

    def run(self, function: Callable[P, R], *arguments: P.args, **options: P.kwargs) -> R:
        """Implement :class:`~actcodec.backends.backend.Backend`; the first tensor among the arguments decides."""
        x = next((argument for argument in arguments if isinstance(argument, Tensor)), None)
        assert x is not None, "a golden function of tensors takes one"
        return fastest(x).run(function, *arguments, **options)

    def compress_scaled(self, x: Tensor, view: MatrixView, scaling: Scaling, near_zero: bool) -> tuple[Tensor, Tensor] | None:
        """Implement :class:`~actcodec.backends.backend.Backend`."""
        return fastest(x).compress_scaled(x, view, scaling, near_zero)

    def begin_scaled(self, x: Tensor, view: MatrixView, scaling: Scaling, near_zero: bool) -> Ending | None:
        """Implement :class:`~actcodec.backends.backend.Backend`."""
        return fastest(x).begin_scaled(x, view, scaling, near_zero)

    def begin_near_zero(self, channels: Tensor) -> Nearness | None:
        """Implement :class:`~actcodec.backends.backend.Backend`."""
        return fastest(channels).begin_near_zero(channels)

    def begin_finite(self, x: Tensor) -> Callable[[], bool] | None:
        """Implement :class:`~actcodec.backends.backend.Backend`."""
        return fastest(x).begin_finite(x)

    def decompress_stream(
        self, header: Header, shifts: Sequence[int], reciprocals: Tensor, payload: Tensor, offsets: Tensor
    ) -> Tensor:
        """Implement :class:`~actcodec.backends.backend.Backend`."""
        return fastest(payload).decompress_stream(header, shifts, reciprocals, payload, offsets)

    def compress_tensor(self, x: Tensor, view: MatrixView, job: Job) -> Tensor:
        """Implement :class:`~actcodec.backends.backend.Backend`."""
        return fastest(x).compress_tensor(x, view, job)

    def decompress_tensor(self, payload: Tensor, view: MatrixView, job: Job, shape: Sequence[int]) -> Tensor:
        """Implement :class:`~actcodec.backends.backend.Backend`."""
        return fastest(payload).decompress_tensor(payload, view, job, shape)
