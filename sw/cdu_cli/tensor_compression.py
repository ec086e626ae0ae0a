"""Compression of one tensor of a file: cast, codec, search for an option, exact copy, report."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite
from typing import TYPE_CHECKING, Any

from cdu_spec.modes import STREAM_NAMES, Dtype
from cdu_tools.errors import UserError
from cdu_tools.near_names import unknown
from cdu_tools.texts import extents

if TYPE_CHECKING:
    import torch
    from actcodec.codecs import Backend, Packed
    from actcodec.codecs.option_search import Goal
    from actcodec.codecs.reconstruction_error import ReconstructionError
    from torch import Tensor

#: Number formats that --cast converts to.
CASTS = ("float32", "float16", "bfloat16")


@dataclass(frozen=True)
class CompressedTensor:
    """Compressed tensor with the content of its report."""

    packed: Packed
    codec: str
    shape: tuple[int, ...]
    dtype: str  #: of the tensor in the file
    original_bytes: int
    found: Mapping[str, Any]  #: options that a search found
    error: ReconstructionError | None

    @property
    def ratio(self) -> float:
        """Return the bytes of the tensor divided by those of its stream."""
        return self.original_bytes / self.packed.nbytes

    def as_json(self) -> dict[str, Any]:
        """Return the entry for --json; NaN and infinity are None."""
        about: dict[str, Any] = {
            "codec": self.codec,
            "shape": list(self.shape),
            "dtype": self.dtype,
            "bytes_original": self.original_bytes,
            "bytes_compressed": self.packed.nbytes,
            "ratio": self.ratio,
        }
        if self.found:
            about["options"] = dict(self.found)
        if self.error is not None:
            numbers = {"max_error": self.error.largest, "rms_error": self.error.rms, "psnr_db": self.error.psnr}
            about |= {name: number if isfinite(number) else None for name, number in numbers.items()}
        return about

    def line(self, name: str) -> str:
        """Return one line of a report."""
        parts = [f"{self.codec}, {self.dtype} {extents(self.shape)}", f"{self.packed.nbytes} bytes from {self.original_bytes}"]
        parts.append(f"ratio {self.ratio:.2f}")
        parts += [f"--{option} {value}" for option, value in self.found.items()]
        if self.error is not None:
            parts.append(f"largest error {self.error.largest:.4g}, RMS {self.error.rms:.4g}, PSNR {self.error.psnr:.2f} dB")
        return f"{printed(name)}: {', '.join(parts)}"


@dataclass(frozen=True)
class TensorCompression:
    """The way in which ``cdu compress`` treats each tensor.

    Parameters
    ----------
    codec, options
        Name and options of the codec. Each tensor has a codec of its own, so its stream is the same beside others as alone.
    backend
        Computes the codec.
    cast
        Number format of :data:`CASTS` to convert every tensor to, or None.
    keep
        Whether a tensor that the codec does not take is kept exactly.
    goal
        Goal of a search for the codec's option, or None.
    report
        Whether the tensor is restored and compared.
    """

    codec: str
    options: Mapping[str, Any]
    backend: Backend
    cast: str | None = None
    keep: bool = False
    goal: Goal | None = None
    report: bool = False

    def __post_init__(self) -> None:
        from actcodec.codecs import CODEC_NAMES, codec

        if self.codec not in CODEC_NAMES:
            raise UserError(unknown("codec", self.codec, STREAM_NAMES))
        codec(self.codec, backend=self.backend, **self.options)
        if self.cast is not None and self.cast not in CASTS:
            raise UserError(unknown("--cast", self.cast, CASTS))
        if self.goal is not None:
            self.goal.settings(self.codec, self.options)

    def compress(self, tensor: Tensor) -> CompressedTensor:
        """Compress a tensor; raise UserError if the codec does not take it, it cannot be cast, or the goal is missed."""
        from actcodec.codecs import codec
        from actcodec.codecs.exact_copy import ExactCopy
        from actcodec.codecs.option_search import search
        from actcodec.golden.dtype_names import dtype_name

        packed: Packed
        found: Mapping[str, Any] = {}
        if self.keep and not self.takes(tensor):
            packed, name = ExactCopy.of(tensor, clone=False), ExactCopy.codec
        else:
            values, name = self._cast(tensor), self.codec
            if self.goal is None:
                packed = codec(name, backend=self.backend, **self.options).compress(values)
            else:
                result = search(values, name, self.options, self.backend, self.goal, tensor)
                packed, found = result.packed, result.options
        return CompressedTensor(
            packed,
            name,
            tuple(tensor.shape),
            dtype_name(tensor.dtype),
            tensor.numel() * tensor.element_size(),
            found,
            self._error(tensor, packed) if self.report and tensor.numel() else None,
        )

    def takes(self, tensor: Tensor) -> bool:
        """Return whether the codec takes the kind, the number format and the shape of a tensor."""
        from actcodec.backends.job import FORMATS
        from actcodec.codecs import codec
        from actcodec.codecs.tensor_kinds import kind_of

        formats = kind_of(tensor) is None and (tensor.dtype in FORMATS or self.cast is not None)
        return formats and codec(self.codec, backend=self.backend, **self.options).takes(tuple(tensor.shape))

    def would_keep(self, tensor: Tensor) -> bool:
        """Return whether ``keep`` would help with a tensor: it has an exact copy, and the codec does not take it."""
        from actcodec.codecs.exact_copy import NUMBER_FORMATS
        from actcodec.codecs.tensor_kinds import kind_of

        return not self.keep and kind_of(tensor) is None and tensor.dtype in NUMBER_FORMATS and not self.takes(tensor)

    def _cast(self, tensor: Tensor) -> Tensor:
        """Return the tensor in a number format that codecs take."""
        import torch
        from actcodec.backends.job import FORMATS
        from actcodec.codecs.tensor_kinds import kind_of
        from actcodec.golden.dtype_names import dtype_name

        if (kind := kind_of(tensor)) is not None:
            raise UserError(f"cannot compress {kind.name}: {kind.remedy}")
        if self.cast is None:
            if tensor.dtype not in FORMATS:
                advice = "" if tensor.dtype.is_complex else ", or convert with --cast"
                raise UserError(f"it holds {dtype_name(tensor.dtype)}: use {', '.join(map(dtype_name, FORMATS))}{advice}")
            return tensor
        if tensor.dtype.is_complex:
            raise UserError(f"it holds {dtype_name(tensor.dtype)}, which --cast does not convert: use real numbers")
        dtype = getattr(torch, self.cast)

        def convert(given: Tensor) -> Tensor:
            values: Tensor = given.to(dtype)
            if bool((values.isinf() & given.isfinite()).any()):
                raise UserError(f"it has values beyond the range of {self.cast}: cast to a number format with a greater range")
            return values

        return self.backend.converted(tensor, convert)

    def _error(self, tensor: Tensor, packed: Packed) -> ReconstructionError:
        from actcodec.codecs.reconstruction_error import reconstruction_error

        return reconstruction_error(tensor, packed.decompress(self.backend), self.backend.release)


def printed(name: str) -> str:
    """Return the name of a tensor for one line of text, with control characters escaped."""
    return name if name.isprintable() else ascii(name)


def stored_dtype(dtype: Dtype | torch.dtype) -> str:
    """Return the name of the number format that the header of a stream or of an exact copy states, such as ``float32``."""
    from actcodec.backends.job import DTYPES
    from actcodec.golden.dtype_names import dtype_name

    return dtype_name(DTYPES[dtype] if isinstance(dtype, Dtype) else dtype)
