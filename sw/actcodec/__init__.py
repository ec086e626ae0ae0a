"""Activation codecs for training: golden model, codecs, and the plug-in for PyTorch.

>>> import torch, actcodec
>>> packed = actcodec.codec("jpeg-act", dqt="optL").compress(torch.zeros(1, 8, 8, 8))
>>> packed.nbytes < 1 * 8 * 8 * 8 * 4, actcodec.decompress(packed).shape
(True, torch.Size([1, 8, 8, 8]))
"""

from actcodec.codecs import Compressed, codec, decompress, from_bytes
from actcodec.graph.compiled import Compiled, compiled
from actcodec.training import ActivationCompression, Policy, Rule, Statistics, check, compress_activations, from_toml

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
