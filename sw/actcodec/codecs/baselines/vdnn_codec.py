"""vDNN (Rhu et al., MICRO 2016): activations wait in host memory as they are. CUDA only; on the CPU nothing moves."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from actcodec.codecs.codec import Codec, check_input
from actcodec.codecs.compressed import Packed, RawCopy
from actcodec.offload.host_swap import HostSwap


@dataclass
class VdnnCodec(Codec):
    """``vdnn``: the bytes as they are, copied to pinned host memory on a stream of its own; lossless, ratio 1.

    A tensor on the CPU is in host memory already: it is copied, as codec ``none`` does, and not moved.
    """

    name = "vdnn"
    lossless = True

    def __post_init__(self) -> None:
        self._swap = HostSwap()

    def compress(self, x: Tensor) -> Packed:
        """Implement :class:`Codec`."""
        check_input(x)
        # A copy on the device first: the model may change its tensor in place while this one is on its way.
        return self._swap.out(RawCopy(x.detach().clone()))

    def decompress(self, compressed: Packed) -> Tensor:
        """Implement :class:`Codec`."""
        return compressed.decompress()
