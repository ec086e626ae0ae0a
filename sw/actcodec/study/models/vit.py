"""A small vision transformer (Dosovitskiy et al., 2021), of torch's own encoder layers."""

from __future__ import annotations

import torch
from torch import Tensor, nn

#: Patches along each side of an image.
PATCHES = 8
#: Channels of an attention head.
_HEAD = 16


class VisionTransformer(nn.Module):
    """Patches, learnt positions, pre-norm encoder layers, layer norm, mean over the patches, linear classifier.

    Parameters
    ----------
    channels
        Channels of the images.
    classes
        Number of classes.
    side
        Pixels of a side of the images, a multiple of 8.
    width
        Channels of a patch, a multiple of 16, which is what a head of attention has.
    depth
        Number of layers.
    """

    def __init__(self, channels: int = 3, classes: int = 10, side: int = 32, width: int = 64, depth: int = 4) -> None:
        super().__init__()
        patch = side // PATCHES
        self.patches = nn.Conv2d(channels, width, patch, patch)
        self.positions = nn.Parameter(0.02 * torch.randn(PATCHES * PATCHES, width))
        layer = nn.TransformerEncoderLayer(
            width, width // _HEAD, 4 * width, dropout=0.0, activation="gelu", batch_first=True, norm_first=True
        )
        self.layers = nn.TransformerEncoder(layer, depth, enable_nested_tensor=False)
        self.norm = nn.LayerNorm(width)
        self.classifier = nn.Linear(width, classes)

    def forward(self, x: Tensor) -> Tensor:
        """(N, channels, side, side) -> logits (N, classes)."""
        tokens = self.patches(x).flatten(2).transpose(1, 2) + self.positions
        logits: Tensor = self.classifier(self.norm(self.layers(tokens)).mean(1))
        return logits
