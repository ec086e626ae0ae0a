"""vDNN (Rhu et al., MICRO 2016): unchanged activations wait in host memory. CUDA only; on the CPU nothing moves."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from actcodec.codecs.codec import Codec, check_input
from actcodec.codecs.compressed import Packed, RawCopy
from actcodec.offload.host_swap import HostSwap


@dataclass
class VdnnCodec(Codec):
    """Codec ``vdnn``: copies the bytes to pinned host memory on a separate stream; lossless, ratio 1.

    A tensor on the CPU is in host memory already: it is copied, as with codec ``none``, and not moved.
    """

    name = "vdnn"
    lossless = True

    def __post_init__(self) -> None:
        self._swap = HostSwap()

    def compress(self, x: Tensor) -> Packed:
        """Implement :class:`Codec`."""
        check_input(x)
        # A copy on the device comes first: the model may change its tensor in place during the transfer.
        return self._swap.out(RawCopy(x.detach().clone()))

    def decompress(self, compressed: Packed) -> Tensor:
        """Implement :class:`Codec`."""
        return compressed.decompress()
