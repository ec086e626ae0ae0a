"""A small super-resolution network in the shape of VDSR (Kim et al., 2016): convolutions and ReLU that learn a residual."""

from __future__ import annotations

from torch import Tensor, nn


class Vdsr(nn.Module):
    """``depth`` 3x3 convolutions with ReLU between them; the result is added to the (bicubically enlarged) input.

    Parameters
    ----------
    channels
        Channels of the images.
    width
        Channels between the convolutions.
    depth
        Number of convolutions, at least 2.
    """

    def __init__(self, channels: int = 1, width: int = 24, depth: int = 6) -> None:
        super().__init__()
        layers: list[nn.Module] = [nn.Conv2d(channels, width, 3, 1, 1), nn.ReLU()]
        for _ in range(depth - 2):
            layers += [nn.Conv2d(width, width, 3, 1, 1), nn.ReLU()]
        for layer in layers:
            if isinstance(layer, nn.Conv2d):
                nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")
        last = nn.Conv2d(width, channels, 3, 1, 1)
        # Training starts at the bicubic image: an untrained residual would first have to be unlearnt.
        nn.init.zeros_(last.weight)
        assert last.bias is not None
        nn.init.zeros_(last.bias)
        self.residual = nn.Sequential(*layers, last)

    def forward(self, x: Tensor) -> Tensor:
        """(N, channels, H, W) -> the same shape."""
        y: Tensor = self.residual(x)
        return x + y
