"""Interface between codecs and the backends that compute for them, and the selection of a backend by name."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec

from cdu_spec.bitstream import MatrixView
from cdu_tools.distribution import missing
from cdu_tools.errors import MissingToolError, UserError
from torch import Tensor

from actcodec.backends.block_quantizer import BlockQuantizer
from actcodec.backends.entropy_coder import EntropyCoder
from actcodec.backends.group_quantizer import GroupQuantizer
from actcodec.backends.job import Job, beats_in, tensor_from_beats
from actcodec.backends.predicted_coder import PredictedCoder
from actcodec.backends.range_quantizer import RangeQuantizer
from actcodec.backends.row_quantizer import RowQuantizer
from actcodec.backends.sign_arithmetic import SignArithmetic
from actcodec.backends.step_quantizer import StepQuantizer
from actcodec.golden import block_statistics, channel_statistics, sfpr

#: Name of the golden model as a backend.
TORCH = "torch"
#: Name of the compiled kernels as a backend.
NATIVE = "native"
#: Name of the kernels for GPUs as a backend.
TRITON = "triton"
#: Name of the backend that takes the fastest of these for each tensor.
AUTO = "auto"
#: The oldest Triton whose compiled kernels round as IEEE 754 says; 3.5 divides otherwise.
LEAST_TRITON = (3, 6)
#: Group of the entry points that other packages add backends with.
BACKEND_GROUP = "actcodec.backends"


class MismatchError(UserError):
    """Raised when a backend's result differs from the golden model's; the message says in which tensor, and where."""


class Backend(ABC):
    """Base class of backends, which compute jobs; a subclass needs :meth:`compress` and :meth:`decompress`, on beats.

    Codecs call the two ``*_tensor`` methods; a backend may override them to avoid the detour over beats. The other methods do
    the host's part of the work, statistics for scales and forms that no hardware has; they use the golden model unless a
    backend overrides them with a faster computation of the same values.
    """

    @abstractmethod
    def compress(self, job: Job, beats: Tensor) -> Tensor:
        """Return the payload, uint8 (n,), of beats (job.beats, 8) in feeding order, of the dtype that ``job.dtype`` names."""

    @abstractmethod
    def decompress(self, job: Job, payload: Tensor) -> Tensor:
        """Return beats (job.beats, 8) in feeding order, of the dtype that ``job.dtype`` names.

        Values in the padding are unspecified. Raises BitstreamError for a payload that does not fit the job.
        """

    def compress_tensor(self, x: Tensor, view: MatrixView, job: Job) -> Tensor:
        """Return the payload of a tensor, uint8 (n,), on the tensor's device."""
        return self.compress(job, beats_in(x, view)).to(x.device)

    def decompress_tensor(self, payload: Tensor, view: MatrixView, job: Job, shape: Sequence[int]) -> Tensor:
        """Return the tensor of a payload, of the dtype that ``job.dtype`` names, on the payload's device."""
        return tensor_from_beats(self.decompress(job, payload), view, shape).to(payload.device)

    def channel_maxima(self, channels: Tensor, nonfinite: str = "raise") -> Tensor:
        """Return the largest magnitude of each channel; see :func:`actcodec.golden.sfpr.channel_maxima`."""
        return sfpr.channel_maxima(channels, nonfinite)

    def residual_maxima(self, x: Tensor, view: MatrixView, k: Tensor) -> Tensor:
        """Return the largest residual of each channel; see :func:`actcodec.golden.block_statistics.residual_maxima`."""
        return block_statistics.residual_maxima(x, view, k)

    def channel_edges(self, channels: Tensor) -> tuple[Tensor, Tensor]:
        """Return the least and greatest value of each channel; see :func:`actcodec.golden.channel_statistics.channel_edges`."""
        return channel_statistics.channel_edges(channels)

    def channel_moments(self, channels: Tensor, least: Tensor, greatest: Tensor) -> tuple[Tensor, Tensor]:
        """Return mean and variance of each channel; see :func:`actcodec.golden.channel_statistics.channel_moments`."""
        return channel_statistics.channel_moments(channels, least, greatest)

    def squared_errors(self, channels: Tensor, steps: Tensor) -> Tensor:
        """Return the squared rounding error of each channel; see :func:`actcodec.golden.channel_statistics.squared_errors`."""
        return channel_statistics.squared_errors(channels, steps)

    def entropy_coder(self) -> EntropyCoder:
        """Return the entropy coder of JPEG-BASE's blocks; no hardware has one."""
        return EntropyCoder()

    def step_quantizer(self) -> StepQuantizer:
        """Return the quantiser of BLPA's copies in floating point; no hardware has one."""
        return StepQuantizer()

    def predicted_coder(self) -> PredictedCoder:
        """Return the coder of copies that are predicted and entropy coded; no hardware has one."""
        return PredictedCoder()

    def row_quantizer(self) -> RowQuantizer:
        """Return the quantiser of AC-GC's codes of any width; no hardware has one."""
        return RowQuantizer()

    def range_quantizer(self) -> RangeQuantizer:
        """Return the quantiser of DIVISION's and ActNN's floating-point forms; no hardware has one."""
        return RangeQuantizer()

    def block_quantizer(self) -> BlockQuantizer:
        """Return the quantiser of MX and NVFP4 blocks."""
        return BlockQuantizer()

    def sign_arithmetic(self) -> SignArithmetic:
        """Return the arithmetic of exact signs beside reconstructions; it codes their bits as jobs of mode brc."""
        return SignArithmetic(self)

    def group_quantizer(self) -> GroupQuantizer:
        """Return the quantiser of groups within samples in floating point; raise UserError for a backend without one."""
        software = f"{TORCH!r}, {NATIVE!r} or {TRITON!r}"
        raise UserError(f"groups within samples are computed by backend {software}, and by no hardware")


def triton_backend() -> Backend:
    """Return the backend of kernels for GPUs; raise MissingToolError if Triton is not installed or too old."""
    if find_spec("triton") is None:
        raise missing("the package triton of backend 'triton'", "gpu")
    import triton

    if tuple(map(int, triton.__version__.split(".")[:2])) < LEAST_TRITON:
        least = ".".join(map(str, LEAST_TRITON))
        raise MissingToolError(
            f"backend 'triton' needs triton {least} or newer, and {triton.__version__} is installed: use backend {TORCH!r}, "
            "or a newer torch"
        )
    from actcodec.backends.triton.backend import TritonBackend

    return TritonBackend()


def added() -> dict[str, EntryPoint]:
    """Return the backends that installed packages add, by name."""
    return {entry.name: entry for entry in entry_points(group=BACKEND_GROUP)}


def backend(which: str | Backend) -> Backend:
    """Return a backend by name, or the given one.

    ``torch`` is the golden model. ``native`` produces the same bytes with kernels that are compiled on first use
    (:mod:`actcodec.backends.native`), ``triton`` with kernels for GPUs (:mod:`actcodec.backends.triton`). ``auto`` uses the
    fastest of these for each tensor: ``native`` on the CPU, if there is a compiler, ``triton`` on CUDA devices, if Triton is
    installed. Other packages add backends as entry points of the group ``actcodec.backends``: functions that take the part of
    the name after the colon (None without a colon) and return a :class:`Backend`. For example, ``rtl`` simulates the compiled
    unit of configuration ``tiny``, and ``rtl:paper`` that of configuration ``paper``.

    Raises UserError for an unknown name and MissingToolError if the package or compiler that a backend needs is not installed.
    """
    from actcodec.backends.torch_backend import TorchBackend

    if isinstance(which, Backend):
        return which
    if which == TORCH:
        return TorchBackend()
    if which == NATIVE:
        from actcodec.backends.native.backend import NativeBackend

        return NativeBackend()
    if which == TRITON:
        return triton_backend()
    if which == AUTO:
        from actcodec.backends.auto_backend import AutoBackend

        return AutoBackend()
    name, colon, argument = which.partition(":") if isinstance(which, str) else ("", "", "")
    found = added()
    if name not in found:
        names = ", ".join(repr(known) for known in (TORCH, NATIVE, TRITON, AUTO, *found))
        raise UserError(f"unknown backend {which!r}: use {names}, or an object derived from actcodec.codecs.Backend")
    try:
        make = found[name].load()
    except ModuleNotFoundError as error:
        raise missing(f"the package {error.name} of backend {name!r}", "verify") from error
    made = make(argument if colon else None)
    assert isinstance(made, Backend), f"{found[name].value} did not return a Backend"
    return made
