"""Activation codecs for training: golden model, codecs, and the plug-in for PyTorch.

>>> import torch, actcodec
>>> packed = actcodec.codec("jpeg-act", dqt="optL").compress(torch.zeros(1, 8, 8, 8))
>>> packed.nbytes < 1 * 8 * 8 * 8 * 4, actcodec.decompress(packed).shape
(True, torch.Size([1, 8, 8, 8]))
"""

from typing import TYPE_CHECKING, Any

from actcodec.codecs import Compressed, codec, decompress, from_bytes
from actcodec.study import check
from actcodec.training import ActivationCompression, Policy, Rule, Statistics, compress_activations, from_toml

if TYPE_CHECKING:
    from actcodec.graph.compiled import Compiled, compiled

__all__ = [
    "ActivationCompression",
    "Compiled",
    "Compressed",
    "Policy",
    "Rule",
    "Statistics",
    "check",
    "codec",
    "compiled",
    "compress_activations",
    "decompress",
    "from_bytes",
    "from_toml",
]


def __getattr__(name: str) -> Any:
    """Import names that need torch's compiler, whose import takes as long as torch's, only when they are used."""
    if name in ("Compiled", "compiled"):
        from actcodec.graph import compiled as door

        return getattr(door, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
