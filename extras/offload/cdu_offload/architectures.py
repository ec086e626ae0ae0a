"""Full-size networks, only for tracing: ResNet-18 and -50 (He et al., 2016) and VGG-16 (Simonyan and Zisserman, 2015)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from actcodec.study.models import Vdsr, WideResNet
from torch import Tensor, nn
from torch.nn import functional


class Residual(nn.Module):
    """A block of He et al.: two 3x3 convolutions, or a bottleneck: 1x1, 3x3 with the stride, 1x1 to four times the channels."""

    def __init__(self, channels_in: int, channels: int, stride: int, bottleneck: bool) -> None:
        super().__init__()
        sizes = [(1, 1, channels), (3, stride, channels), (1, 1, 4 * channels)]
        layers: list[nn.Module] = []
        now = channels_in
        for kernel, step, after in sizes if bottleneck else [(3, stride, channels), (3, 1, channels)]:
            layers += [*_convolution(now, after, kernel, step), nn.ReLU()]
            now = after
        self.body = nn.Sequential(*layers[:-1])
        same = stride == 1 and channels_in == now
        self.shortcut: nn.Module = nn.Identity() if same else nn.Sequential(*_convolution(channels_in, now, 1, stride))

    def forward(self, x: Tensor) -> Tensor:
        """Compute (N, channels_in, H, W) -> (N, channels or 4 channels, H / stride, W / stride)."""
        return functional.relu(self.body(x) + self.shortcut(x))


def _convolution(channels_in: int, channels: int, kernel: int, stride: int) -> tuple[nn.Module, nn.Module]:
    return nn.Conv2d(channels_in, channels, kernel, stride, kernel // 2, bias=False), nn.BatchNorm2d(channels)


def resnet(blocks: tuple[int, ...], bottleneck: bool, classes: int, small_images: bool = False) -> nn.Module:
    """Return a ResNet with ``blocks`` blocks per stage; for small images (CIFAR) with a 3x3 stem of stride 1 and no pool."""
    stem = [*_convolution(3, 64, 3, 1), nn.ReLU()] if small_images else [*_convolution(3, 64, 7, 2), nn.ReLU()]
    layers: list[nn.Module] = [*stem, *([] if small_images else [nn.MaxPool2d(3, 2, 1)])]
    now = 64
    for stage, count in enumerate(blocks):
        for block in range(count):
            layers.append(Residual(now, 64 << stage, 2 if stage and not block else 1, bottleneck))
            now = (64 << stage) * (4 if bottleneck else 1)
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(now, classes))


def vgg16(classes: int = 1000) -> nn.Module:
    """Return VGG-16 for 224x224 images: configuration D, without batch norm."""
    layers: list[nn.Module] = []
    now = 3
    for channels, count in ((64, 2), (128, 2), (256, 3), (512, 3), (512, 3)):
        for _ in range(count):
            layers += [nn.Conv2d(now, channels, 3, 1, 1), nn.ReLU()]
            now = channels
        layers.append(nn.MaxPool2d(2))
    layers.append(nn.Flatten())
    for features_in, features in ((512 * 7 * 7, 4096), (4096, 4096)):
        layers += [nn.Linear(features_in, features), nn.ReLU(), nn.Dropout()]
    return nn.Sequential(*layers, nn.Linear(4096, classes))


@dataclass(frozen=True)
class Architecture:
    """A network to be traced."""

    title: str
    family: str  #: the model of ``cdu train`` whose measured ratios apply to it
    build: Callable[[], nn.Module]
    inputs: tuple[int, ...]  #: (N, C, H, W)
    classes: int | None  #: None: super-resolution, trained with the mean square error


ARCHITECTURES = {
    "resnet18": Architecture(
        "ResNet-18, ImageNet", "resnet", lambda: resnet((2, 2, 2, 2), False, 1000), (64, 3, 224, 224), 1000
    ),
    "resnet50": Architecture(
        "ResNet-50, ImageNet", "resnet", lambda: resnet((3, 4, 6, 3), True, 1000), (64, 3, 224, 224), 1000
    ),
    "vgg16": Architecture("VGG-16, ImageNet", "vgg", vgg16, (64, 3, 224, 224), 1000),
    "resnet50-cifar": Architecture(
        "ResNet-50, CIFAR-10", "resnet", lambda: resnet((3, 4, 6, 3), True, 10, small_images=True), (128, 3, 32, 32), 10
    ),
    "wrn28-10": Architecture(
        "WRN-28-10, CIFAR-10", "wide-resnet", lambda: WideResNet(width=160, depth=4), (128, 3, 32, 32), 10
    ),
    "vdsr": Architecture("VDSR, 41x41 patches", "vdsr", lambda: Vdsr(width=64, depth=20), (64, 1, 41, 41), None),
}
