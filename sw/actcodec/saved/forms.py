"""The forms in which a saved tensor is kept between forward and backward: exact, in one bit per value, or compressed."""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor

from actcodec.codecs import Codec, Packed
from actcodec.codecs.centring import CentredForm, complete_centred, compress_centred, decompress_centred
from actcodec.codecs.tensor_kinds import bytes_of, kind_of
from actcodec.golden.wide_codes import put_wide, take_wide, wide_bytes
from actcodec.saved.layout import Layout, parts

#: Used in place of a codec's name for lossless forms of one or two bits per value.
BITS = "bits"
#: Number of values of a mask, and number of values that are looked at before all of them.
_VALUES_OF_MASKS, _FEW = 2, 64


class Form(Protocol):
    """One kept tensor."""

    @property
    def nbytes(self) -> int:
        """Bytes kept."""

    def tensor(self) -> Tensor:
        """Return the tensor for backward, with size, stride, dtype and device of the saved one."""


class Exact:
    """The tensor itself, detached from its graph (which it would keep alive in a cycle).

    It shares its memory with the model, so that a change in place between forward and backward would silently change the
    gradient: :meth:`tensor` raises as autograd does without hooks.
    """

    __slots__ = ("_tensor", "_version", "nbytes")

    def __init__(self, x: Tensor, nbytes: int | None = None) -> None:
        self._tensor = x.detach()
        self._version = x._version
        #: Bytes of the distinct values.
        self.nbytes = distinct_bytes(x) if nbytes is None else nbytes

    @property
    def changed(self) -> bool:
        """Return whether the tensor was changed in place after it was saved."""
        return self._tensor._version != self._version

    def tensor(self) -> Tensor:
        """Return the tensor; RuntimeError if it was changed in place."""
        if self._tensor._version != self._version:
            raise RuntimeError(
                "one of the variables needed for gradient computation has been modified by an inplace operation: "
                f"[{self._tensor.type()} {list(self._tensor.shape)}] is at version {self._tensor._version}; "
                f"expected version {self._version} instead."
            )
        return self._tensor


class BitForm:
    """A tensor of zeros and one other value, in one bit per value; exact.

    It holds boolean masks, and the float masks of dropout (0 and 1 / (1 - p)) and of attention (0 and minus infinity).
    """

    def __init__(self, x: Tensor, other: Tensor) -> None:
        self._layout = Layout.of(x)
        self._other = other
        flat = self._layout.in_memory_order(x)
        self._count = flat.numel()
        self._bytes = torch.empty(wide_bytes(self._count, 1), dtype=torch.uint8, device=x.device)
        for part in parts(self._count):
            put_wide(self._bytes, (flat[part] != 0).view(torch.uint8), 1, self._count, part.start)

    @classmethod
    def of(cls, x: Tensor) -> BitForm | None:
        """Return the packed form, or None if ``x`` has values other than zero and one other number."""
        if Layout.of(x).overlaps or x.numel() == 0:
            return None
        if x.dtype == torch.bool:
            return cls(x, torch.ones((), dtype=torch.bool, device=x.device))
        if not x.is_floating_point():
            return None
        flat = Layout.of(x).in_memory_order(x)
        if len(set(flat[:_FEW].tolist())) > _VALUES_OF_MASKS:  # most tensors that are no masks show it at once
            return None
        most = flat.amax()
        other = torch.where(most > 0, most, flat.amin())
        if not bool((other != 0) & ~other.isnan()):
            return None
        for part in parts(flat.numel()):
            values = flat[part]
            # -0.0 would come back as 0.0, which is equal but has other bits.
            if not bool((((values == 0) & ~torch.signbit(values)) | (values == other)).all()):
                return None
        return cls(x, other)

    @property
    def nbytes(self) -> int:
        """Bytes of the mask and of the other value."""
        return self._bytes.numel() + self._other.element_size()

    def tensor(self) -> Tensor:
        """Return the mask."""
        flat = torch.zeros(self._count, dtype=self._layout.dtype, device=self._layout.device)
        for part in parts(self._count):
            flat[part].masked_fill_(take_wide(self._bytes, 1, self._count, part, torch.uint8).view(torch.bool), self._other)
        return self._layout.from_memory_order(flat)


class Coded:
    """A tensor compressed by a codec: a copy, which later changes of the original do not affect.

    Parameters
    ----------
    x
        The tensor.
    codec
        Compresses it.
    at_once
        False to leave the end to :meth:`end` on devices that compute beside the host.
    """

    def __init__(self, x: Tensor, codec: Codec, *, at_once: bool = True) -> None:
        self._layout = Layout.of(x)
        self.codec = codec
        values = self._layout.distinct_values(x.detach())
        end = None if at_once else codec.begin(values)
        self._begun = None if end is None else (values, Exact(values), end)
        self._packed: Packed | None = compress_centred(values, codec) if end is None else None

    @property
    def begun(self) -> bool:
        """Return whether compression has yet to end; until then nothing else may be asked."""
        return self._begun is not None

    def end(self) -> None:
        """Wait for the device and end compression that has begun.

        Raises UserError as the codec does, and RuntimeError if values that are needed again have changed.
        """
        if self._begun is not None:
            (values, exact, end), self._begun = self._begun, None
            at_once = end()
            values = exact.tensor() if at_once is None else values
            self._packed = complete_centred(values, self.codec, at_once)

    @property
    def keeps_zeros(self) -> bool:
        """Return whether the reconstruction is zero exactly where the values are."""
        return self.codec.keeps_zeros and not isinstance(self._packed, CentredForm)

    @property
    def nbytes(self) -> int:
        """Bytes of the compressed form, header, scales and centres included."""
        assert self._packed is not None
        return int(self._packed.nbytes)

    def tensor(self) -> Tensor:
        """Return the reconstruction; ReconstructionError if the codec returns another shape or dtype."""
        assert self._packed is not None
        return self._layout.restore(decompress_centred(self._packed, self.codec), f"codec {self.codec.name!r}")


def distinct_bytes(x: Tensor) -> int:
    """Return the bytes of the values of ``x``, values repeated by expansion counted once; for sparse tensors those stored."""
    if kind_of(x) is not None:
        return bytes_of(x)
    return Layout.of(x).distinct_bytes
