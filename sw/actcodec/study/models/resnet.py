"""A small convolutional ResNet for images, in the shape of the CIFAR ResNets (He et al., 2016, section 4.2)."""

from __future__ import annotations

from torch import Tensor, nn


class BasicBlock(nn.Module):
    """Two 3x3 convolutions with batch norm and a shortcut, a 1x1 convolution where the shape changes."""

    def __init__(self, channels_in: int, channels: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels_in, channels, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(channels)
        self.relu1 = nn.ReLU()
        self.conv2 = nn.Conv2d(channels, channels, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(channels)
        self.relu2 = nn.ReLU()
        self.shortcut: nn.Module = nn.Identity()
        if stride != 1 or channels_in != channels:
            self.shortcut = nn.Sequential(nn.Conv2d(channels_in, channels, 1, stride, bias=False), nn.BatchNorm2d(channels))

    def forward(self, x: Tensor) -> Tensor:
        """(N, channels_in, H, W) -> (N, channels, H / stride, W / stride)."""
        y = self.relu1(self.bn1(self.conv1(x)))
        y = self.bn2(self.conv2(y))
        out: Tensor = self.relu2(y + self.shortcut(x))
        return out


class ResNet(nn.Module):
    """A stem, stages of :class:`BasicBlock` (width doubled and size halved from stage to stage), mean, linear classifier.

    Parameters
    ----------
    channels
        Channels of the images.
    classes
        Number of classes.
    width
        Channels of the first stage.
    depth
        Blocks per stage.
    stages
        Number of stages. Maps that become narrower than 8 do not fit jpeg-act and get sfpr.
    """

    def __init__(self, channels: int = 3, classes: int = 10, width: int = 16, depth: int = 1, stages: int = 2) -> None:
        super().__init__()
        self.stem = nn.Conv2d(channels, width, 3, 1, 1, bias=False)
        self.bn = nn.BatchNorm2d(width)
        self.relu = nn.ReLU()
        blocks: list[nn.Module] = []
        now = width
        for stage in range(stages):
            for block in range(depth):
                after = width << stage
                blocks.append(BasicBlock(now, after, 2 if stage > 0 and block == 0 else 1))
                now = after
        self.blocks = nn.Sequential(*blocks)
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.classifier = nn.Linear(now, classes)

    def forward(self, x: Tensor) -> Tensor:
        """(N, channels, H, W) -> logits (N, classes)."""
        y = self.blocks(self.relu(self.bn(self.stem(x))))
        logits: Tensor = self.classifier(self.pool(y).flatten(1))
        return logits
