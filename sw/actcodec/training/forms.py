"""The forms in which a saved tensor is kept between forward and backward: as it is, in one bit per value, compressed."""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor

from actcodec.codecs import Codec, Packed
from actcodec.training.layout import Layout

#: In place of a codec's name: what is needed, without loss, in one or two bits a value.
BITS = "bits"


class Form(Protocol):
    """One kept tensor."""

    @property
    def nbytes(self) -> int:
        """Bytes kept."""

    def tensor(self) -> Tensor:
        """The tensor that backward gets: size, stride, dtype and device of the saved one."""


class Exact:
    """The tensor itself, without its history (which would keep the graph alive in a cycle).

    It shares its memory with the model, so that a change in place between forward and backward would silently change the
    gradient: :meth:`tensor` raises as autograd does without hooks.
    """

    def __init__(self, x: Tensor) -> None:
        self._tensor = x.detach()
        self._version = x._version

    @property
    def nbytes(self) -> int:
        """Bytes of the distinct values."""
        return distinct_bytes(self._tensor)

    def tensor(self) -> Tensor:
        """The tensor; RuntimeError when it was changed in place."""
        now = self._tensor._version
        if now != self._version:
            raise RuntimeError(
                "one of the variables needed for gradient computation has been modified by an inplace operation: "
                f"[{self._tensor.type()} {list(self._tensor.shape)}] is at version {now}; "
                f"expected version {self._version} instead."
            )
        return self._tensor


class Bits:
    """Two distinct values, zero and one other, in one bit per value; exact.

    Boolean masks, and the float masks of dropout (0 and 1 / (1 - p)).
    """

    def __init__(self, x: Tensor, scale: Tensor) -> None:
        self._layout = Layout.of(x)
        self._scale = scale
        flat = self._layout.distinct_values(x).flatten() != 0
        padded = torch.nn.functional.pad(flat, (0, -flat.numel() % 8)).view(-1, 8)
        weights = torch.tensor([1, 2, 4, 8, 16, 32, 64, 128], dtype=torch.uint8, device=x.device)
        self._count = flat.numel()
        self._bytes = (padded * weights).sum(dim=1, dtype=torch.uint8)

    @classmethod
    def of(cls, x: Tensor) -> Bits | None:
        """The packed form, or None when ``x`` has other values than zero and one positive number."""
        if Layout.of(x).overlaps or x.numel() == 0:
            return None
        if x.dtype == torch.bool:
            return cls(x, torch.ones((), dtype=torch.bool, device=x.device))
        if not x.is_floating_point():
            return None
        scale = x.detach().amax()
        if not bool((scale > 0) & torch.isfinite(scale)) or not bool(((x == 0) | (x == scale)).all()):
            return None
        # -0.0 would come back as 0.0, which is equal but not the same.
        return None if bool((torch.signbit(x) & (x == 0)).any()) else cls(x, scale)

    @property
    def nbytes(self) -> int:
        """Bytes of the mask and of the scale."""
        return self._bytes.numel() + self._scale.element_size()

    def tensor(self) -> Tensor:
        """The mask."""
        places = torch.arange(8, dtype=torch.uint8, device=self._bytes.device)
        flat = (self._bytes[:, None] >> places & 1).flatten()[: self._count].bool()
        values = torch.where(flat, self._scale, torch.zeros_like(self._scale))
        return self._layout.restore(values.view(self._layout.distinct_size), "the mask packer")


class Coded:
    """A tensor compressed by a codec. It is a copy: nothing that happens to the original later matters."""

    def __init__(self, x: Tensor, codec: Codec) -> None:
        self._layout = Layout.of(x)
        self.codec = codec
        self._packed: Packed = codec.compress(self._layout.distinct_values(x.detach()))

    @property
    def nbytes(self) -> int:
        """Bytes of the compressed form, header and scales included."""
        return int(self._packed.nbytes)

    def tensor(self) -> Tensor:
        """The reconstruction; ReconstructionError when the codec returns another shape or dtype."""
        return self._layout.restore(self.codec.decompress(self._packed), f"codec {self.codec.name!r}")


def distinct_bytes(x: Tensor) -> int:
    """Bytes of the values of ``x``, those repeated by expansion counted once."""
    count = 1
    for extent in Layout.of(x).distinct_size:
        count *= extent
    return count * x.element_size()
