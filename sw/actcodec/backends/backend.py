"""Interface between codecs and the backends that compute for them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple, ParamSpec, TypeVar, cast

from cdu_spec.bitstream import Header
from cdu_spec.matrix_view import MatrixView
from cdu_tools.errors import UserError
from torch import Tensor

from actcodec.backends.job import Job, Scaling, beats_in, decompression_job, tensor_from_beats

P = ParamSpec("P")
R = TypeVar("R")
#: Function that waits for the device and returns what :meth:`Backend.compress_scaled` returns.
Ending = Callable[[], "tuple[Tensor, Tensor] | None"]


class Nearness(NamedTuple):
    """Statistics of a tensor that a device computes beside the host."""

    largest: Tensor  #: largest magnitude, float32 (), on the device
    #: Waits; returns True if all magnitudes are below a number, by default infinity, and surely no channel is far from zero.
    holds: Callable[..., bool]


class MismatchError(UserError):
    """Raised when a backend's result differs from the golden model's; the message says in which tensor, and where."""


class Backend(ABC):
    """Base class of backends, which compute jobs; a subclass needs :meth:`compress` and :meth:`decompress`, on beats.

    Codecs call the two ``*_tensor`` methods; a backend may override them to avoid the detour over beats. They compute all else
    by :meth:`run`, which uses the golden model unless a backend names faster functions with the same results.
    """

    #: Golden functions and the backend's implementations, which take the same arguments and return the same bits.
    implementations: ClassVar[Mapping[Callable[..., Any], Callable[..., Any]]] = MappingProxyType({})
    #: Whether tensors of any length can be computed in forms that no hardware has.
    software: ClassVar[bool] = False

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
        return self.compress(job.on_host(), beats_in(x, view)).to(x.device)

    def decompress_tensor(self, payload: Tensor, view: MatrixView, job: Job, shape: Sequence[int]) -> Tensor:
        """Return the tensor of a payload, of the dtype that ``job.dtype`` names, on the payload's device."""
        return tensor_from_beats(self.decompress(job.on_host(), payload), view, shape).to(payload.device)

    def compress_scaled(self, x: Tensor, view: MatrixView, scaling: Scaling, near_zero: bool) -> tuple[Tensor, Tensor] | None:
        """Return the payload of a tensor, uint8 (n,), and reciprocals, float32 (channels,), without asking for scales between.

        They are those of :func:`actcodec.golden.sfpr.scales` and of the job for these multipliers. None if the backend has no
        kernels for this, if values are not all finite, and with ``near_zero`` unless it is certain that no channel is far from
        zero.

        Parameters
        ----------
        x
            Contiguous tensor.
        view
            Its view.
        scaling
            Settings of its scales, and its job.
        near_zero
            True to refuse tensors with channels that may be far from zero; axis 1 of ``x`` then counts channels.
        """
        del x, view, scaling, near_zero
        return None

    def begin_scaled(self, x: Tensor, view: MatrixView, scaling: Scaling, near_zero: bool) -> Ending | None:
        """Begin :meth:`compress_scaled` on a device that computes beside the host; return the function that ends it.

        That function waits for what was launched until now. None for a backend that computes on the host, or has no kernels.
        """
        del x, view, scaling, near_zero
        return None

    def begin_near_zero(self, channels: Tensor) -> Nearness | None:
        """Begin to look for channels of (outer, channels, inner) far from zero as :meth:`begin_scaled` does."""
        del channels
        return None

    def begin_finite(self, x: Tensor) -> Callable[[], bool] | None:
        """Begin to look for NaN and infinity as :meth:`begin_scaled` does; the function returns True if there are none."""
        del x
        return None

    def decompress_stream(
        self, header: Header, shifts: Sequence[int], reciprocals: Tensor, payload: Tensor, offsets: Tensor
    ) -> Tensor:
        """Return the tensor of a stream, on the payload's device; raise BitstreamError for a payload that does not fit."""
        job = decompression_job(header, shifts, reciprocals, offsets)
        return self.decompress_tensor(payload, header.view, job, header.shape)

    def run(self, function: Callable[P, R], *arguments: P.args, **options: P.kwargs) -> R:
        """Compute a golden function of whole tensors, by the backend's own implementation where it has one.

        These are the host's part of the work: statistics for scales (:mod:`actcodec.golden.channel_statistics`), and forms that
        no hardware has (:mod:`actcodec.golden.floating`).
        """
        return cast("Callable[P, R]", self.implementations.get(function, function))(*arguments, **options)

    def converted(self, x: Tensor, convert: Callable[[Tensor], Tensor]) -> Tensor:
        """Return a tensor whose values a function has converted one by one, for instance to another number format."""
        return convert(x)

    def release(self) -> None:  # noqa: B027
        """Give memory back that can be read again from files; called between pieces of a large tensor."""
