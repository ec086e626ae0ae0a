"""The seam between a codec and what computes it: the torch model here, a simulated unit elsewhere."""

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
    """A backend that did not compute what the golden model does; the message says which tensor, and where."""


class Backend(ABC):
    """Computes jobs. A subclass needs :meth:`compress` and :meth:`decompress`, which see beats as the hardware does.

    The two ``*_tensor`` methods are what codecs call; a backend may override them where beats would be a detour. What a host
    computes besides, numbers that scales follow from and forms that no hardware knows, is the golden model's unless a backend
    has the same in less time.
    """

    @abstractmethod
    def compress(self, job: Job, beats: Tensor) -> Tensor:
        """Payload, uint8 (n,), of beats (job.beats, 8) in feeding order and of the dtype that ``job.dtype`` names."""

    @abstractmethod
    def decompress(self, job: Job, payload: Tensor) -> Tensor:
        """Beats (job.beats, 8), in feeding order, of the dtype that ``job.dtype`` names.

        What stands in padding is not specified. Raises BitstreamError for a payload that does not fit the job.
        """

    def compress_tensor(self, x: Tensor, view: MatrixView, job: Job) -> Tensor:
        """Payload of a tensor, on its device."""
        return self.compress(job, beats_in(x, view)).to(x.device)

    def decompress_tensor(self, payload: Tensor, view: MatrixView, job: Job, shape: Sequence[int]) -> Tensor:
        """The tensor of a payload, of the dtype that ``job.dtype`` names, on the payload's device."""
        return tensor_from_beats(self.decompress(job, payload), view, shape).to(payload.device)

    def channel_maxima(self, channels: Tensor, nonfinite: str = "raise") -> Tensor:
        """See :func:`actcodec.golden.sfpr.channel_maxima`."""
        return sfpr.channel_maxima(channels, nonfinite)

    def residual_maxima(self, x: Tensor, view: MatrixView, k: Tensor) -> Tensor:
        """See :func:`actcodec.golden.block_statistics.residual_maxima`."""
        return block_statistics.residual_maxima(x, view, k)

    def channel_edges(self, channels: Tensor) -> tuple[Tensor, Tensor]:
        """See :func:`actcodec.golden.channel_statistics.channel_edges`."""
        return channel_statistics.channel_edges(channels)

    def channel_moments(self, channels: Tensor, least: Tensor, greatest: Tensor) -> tuple[Tensor, Tensor]:
        """See :func:`actcodec.golden.channel_statistics.channel_moments`."""
        return channel_statistics.channel_moments(channels, least, greatest)

    def squared_errors(self, channels: Tensor, steps: Tensor) -> Tensor:
        """See :func:`actcodec.golden.channel_statistics.squared_errors`."""
        return channel_statistics.squared_errors(channels, steps)

    def entropy_coder(self) -> EntropyCoder:
        """What codes the blocks of JPEG-BASE; no hardware does it, so it is the golden model's unless a backend is faster."""
        return EntropyCoder()

    def step_quantizer(self) -> StepQuantizer:
        """What computes BLPA's copies in floating point; as above."""
        return StepQuantizer()

    def predicted_coder(self) -> PredictedCoder:
        """What computes copies that are predicted and entropy coded; as above."""
        return PredictedCoder()

    def row_quantizer(self) -> RowQuantizer:
        """What computes AC-GC's codes of any width; as above."""
        return RowQuantizer()

    def range_quantizer(self) -> RangeQuantizer:
        """What computes DIVISION's and ActNN's forms in floating point; as above."""
        return RangeQuantizer()

    def block_quantizer(self) -> BlockQuantizer:
        """What computes the blocks of MX and NVFP4; as above."""
        return BlockQuantizer()

    def sign_arithmetic(self) -> SignArithmetic:
        """What computes exact signs beside reconstructions; as above, but for their bits, which are jobs of mode brc."""
        return SignArithmetic(self)

    def group_quantizer(self) -> GroupQuantizer:
        """What quantises groups within samples in floating point; UserError for a backend that does not do that."""
        software = f"{TORCH!r}, {NATIVE!r} or {TRITON!r}"
        raise UserError(f"groups within samples are computed by backend {software}, and by no hardware")


def triton_backend() -> Backend:
    """The kernels for GPUs; MissingToolError without Triton, or with one that is too old."""
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
    """The backends that installed packages add, by name."""
    return {entry.name: entry for entry in entry_points(group=BACKEND_GROUP)}


def backend(which: str | Backend) -> Backend:
    """A backend by name, or the given one.

    ``torch`` is the golden model, ``native`` the same bytes from kernels that are compiled when they are first needed
    (:mod:`actcodec.backends.native`), ``triton`` the same bytes from kernels for GPUs (:mod:`actcodec.backends.triton`),
    ``auto`` for each tensor the fastest of these: ``native`` on the CPU, if there is a compiler, ``triton`` on CUDA devices, if
    Triton is installed. Other packages add backends as entry points of the group ``actcodec.backends``: functions that take
    what follows a colon in the name (None without one) and return a :class:`Backend`. ``rtl`` is such a one: the compiled unit
    of configuration ``tiny``, ``rtl:paper`` of another one.

    Raises UserError for an unknown name, MissingToolError when the package or compiler that it needs is not installed.
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
