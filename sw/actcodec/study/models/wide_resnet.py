"""A small wide residual network (Zagoruyko and Komodakis, 2016): few pre-activation blocks with many channels."""

from __future__ import annotations

from torch import Tensor, nn


class PreActivationBlock(nn.Module):
    """Batch norm and ReLU before each of two 3x3 convolutions, and a shortcut (He et al., 2016, "Identity mappings")."""

    def __init__(self, channels_in: int, channels: int, stride: int) -> None:
        super().__init__()
        self.bn1 = nn.BatchNorm2d(channels_in)
        self.relu1 = nn.ReLU()
        self.conv1 = nn.Conv2d(channels_in, channels, 3, stride, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(channels)
        self.relu2 = nn.ReLU()
        self.conv2 = nn.Conv2d(channels, channels, 3, 1, 1, bias=False)
        same = stride == 1 and channels_in == channels
        self.shortcut = None if same else nn.Conv2d(channels_in, channels, 1, stride, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """(N, channels_in, H, W) -> (N, channels, H / stride, W / stride)."""
        active = self.relu1(self.bn1(x))
        y: Tensor = self.conv2(self.relu2(self.bn2(self.conv1(active))))
        return y + (x if self.shortcut is None else self.shortcut(active))


class WideResNet(nn.Module):
    """A stem, stages of :class:`PreActivationBlock`, batch norm, mean, linear classifier.

    Parameters
    ----------
    channels
        Channels of the images.
    classes
        Number of classes.
    width
        Channels of the first stage, doubled from stage to stage; the stem has half of them.
    depth
        Blocks per stage.
    stages
        Number of stages; from the second on each halves the maps.
    """

    def __init__(self, channels: int = 3, classes: int = 10, width: int = 32, depth: int = 1, stages: int = 3) -> None:
        super().__init__()
        now = max(1, width // 2)
        self.stem = nn.Conv2d(channels, now, 3, 1, 1, bias=False)
        blocks: list[nn.Module] = []
        for stage in range(stages):
            for block in range(depth):
                after = width << stage
                blocks.append(PreActivationBlock(now, after, 2 if stage > 0 and block == 0 else 1))
                now = after
        self.blocks = nn.Sequential(*blocks)
        self.bn = nn.BatchNorm2d(now)
        self.relu = nn.ReLU()
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.classifier = nn.Linear(now, classes)

    def forward(self, x: Tensor) -> Tensor:
        """(N, channels, H, W) -> logits (N, classes)."""
        y = self.relu(self.bn(self.blocks(self.stem(x))))
        logits: Tensor = self.classifier(self.pool(y).flatten(1))
        return logits
