"""The five networks that benchmarks/compiled_step.py trains: each with one batch, and its blocks for checkpoints."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import torch
from actcodec.study.data.batches import CLASSES, images, shades
from actcodec.study.models import ResNet, VisionTransformer
from actcodec.study.models.library import torchvision
from cdu_zoo.of_torch import UNet
from torch import Tensor, nn
from torch.nn import functional

_VOCABULARY, _TOKENS, _TEXTS = 256, 256, 8
_WIDTH, _DEPTH, _HEADS = 192, 4, 4
_IMAGES, _SIDE = 32, 64


@dataclass(frozen=True)
class Network:
    """A network, one batch of it, and its blocks.

    Parameters
    ----------
    family
        One of :data:`actcodec.study.foreign.FAMILIES`, for which a policy is recommended.
    build
        Makes the model with random weights, in training mode and without dropout.
    batch
        Makes inputs and targets of one step: a pair of tensors.
    blocks
        Lists the parts of a model that a checkpoint per block computes again.
    """

    family: str
    build: Callable[[], nn.Module]
    batch: Callable[[], tuple[Tensor, Tensor]]
    blocks: Callable[[Any], Iterable[nn.Module]]


class Block(nn.Module):
    """A pre-norm transformer block with causal attention and a GELU network of four times the width.

    Parameters
    ----------
    width
        Channels of a token, a multiple of ``heads``.
    heads
        Heads of the attention.
    """

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.inputs, self.output = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        """Map float tokens (N, T, width) to tokens of the same shape."""
        count, length, width = x.shape
        split = self.inputs(self.norm1(x)).view(count, length, 3, self.heads, width // self.heads)
        query, key, value = split.permute(2, 0, 3, 1, 4)
        attention = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.output(attention.transpose(1, 2).reshape(count, length, width))
        y: Tensor = x + self.down(functional.gelu(self.up(self.norm2(x))))
        return y


class Gpt(nn.Module):
    """A small GPT: 4 blocks, 256 positions.

    Parameters
    ----------
    width
        Channels of a token.
    vocabulary
        Number of letters.
    """

    def __init__(self, width: int = _WIDTH, vocabulary: int = _VOCABULARY) -> None:
        super().__init__()
        self.letters, self.positions = nn.Embedding(vocabulary, width), nn.Embedding(_TOKENS, width)
        self.blocks = nn.ModuleList(Block(width, _HEADS) for _ in range(_DEPTH))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary)

    def forward(self, x: Tensor) -> Tensor:
        """Map letters, int64 (N, T), to logits (N, vocabulary, T)."""
        x = self.letters(x) + self.positions(torch.arange(x.shape[1]))
        for block in self.blocks:
            x = block(x)
        logits: Tensor = self.head(self.norm(x))
        return logits.transpose(1, 2)


def _resnet18() -> nn.Module:
    """ResNet-18 of half the width, with the stem for large images: 7 x 7 with stride 2 and a max pool."""
    model = ResNet(classes=CLASSES, width=32, depth=2, stages=4)
    model.stem = nn.Conv2d(3, 32, 7, 2, 3, bias=False)
    model.relu = nn.Sequential(nn.ReLU(), nn.MaxPool2d(3, 2, 1))  # type: ignore[assignment]
    return model


def _mobilenet_v2() -> nn.Module:
    model: nn.Module = torchvision().models.MobileNetV2(num_classes=CLASSES, dropout=0.0)
    return model


def _letters() -> tuple[Tensor, Tensor]:
    letters = torch.randint(_VOCABULARY, (_TEXTS, _TOKENS + 1))
    return letters[:, :-1].contiguous(), letters[:, 1:].contiguous()


def _pictures() -> tuple[Tensor, Tensor]:
    return images(0, _IMAGES, _SIDE)


def _pixels() -> tuple[Tensor, Tensor]:
    pictures, _ = images(0, 8, 2 * _SIDE)
    return pictures, shades(pictures)


NETWORKS = {
    "GPT": Network("GPT/BERT", Gpt, _letters, lambda model: model.blocks),
    "ViT": Network(
        "ViT",
        lambda: VisionTransformer(3, CLASSES, _SIDE, _WIDTH, _DEPTH),
        _pictures,
        lambda model: model.layers.layers,
    ),
    "ResNet-18": Network("CNN", _resnet18, _pictures, lambda model: model.blocks),
    "MobileNetV2": Network("MobileNet", _mobilenet_v2, _pictures, lambda model: model.features),
    "U-Net": Network("U-Net", UNet, _pixels, lambda model: (*model.down, *model.merge)),
}
