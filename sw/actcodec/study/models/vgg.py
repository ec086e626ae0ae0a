"""A small VGG with batch norm (Simonyan and Zisserman, 2015): stages of 3x3 convolutions with max pooling between them."""

from __future__ import annotations

from torch import Tensor, nn


class Vgg(nn.Module):
    """Stages of ``depth`` convolutions with batch norm and ReLU, each ended by max pooling; dropout and a linear classifier.

    Parameters
    ----------
    channels
        Channels of the images.
    classes
        Number of classes.
    width
        Channels of the first stage, doubled from stage to stage.
    depth
        Convolutions per stage.
    stages
        Number of stages; each halves the maps.
    dropout
        Probability with which a feature is left out before the classifier.
    """

    def __init__(
        self, channels: int = 3, classes: int = 10, width: int = 16, depth: int = 2, stages: int = 3, dropout: float = 0.1
    ) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        now = channels
        for stage in range(stages):
            after = width << stage
            for _ in range(depth):
                layers += [nn.Conv2d(now, after, 3, 1, 1, bias=False), nn.BatchNorm2d(after), nn.ReLU()]
                now = after
            layers.append(nn.MaxPool2d(2))
        self.features = nn.Sequential(*layers)
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.classifier = nn.Sequential(nn.Dropout(dropout), nn.Linear(now, classes))

    def forward(self, x: Tensor) -> Tensor:
        """(N, channels, H, W) -> logits (N, classes)."""
        logits: Tensor = self.classifier(self.pool(self.features(x)).flatten(1))
        return logits
