"""Models of torchvision."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from actcodec.study.data.batches import CLASSES, SHADES
from actcodec.study.foreign import Foreign
from actcodec.study.models.library import torchvision
from torch import nn

from cdu_zoo.losses import of_images, of_pixels


def _named(name: str, family: str, **options: Any) -> Foreign:
    """Return a model that the library has under this name."""
    options = {"num_classes": CLASSES} | options
    return _made(name, family, lambda models: getattr(models, name)(**options))


def _made(name: str, family: str, build: Callable[[Any], nn.Module]) -> Foreign:
    """Return an image classifier made of the library's parts, ``build(torchvision.models)``."""
    return Foreign(f"torchvision.{name}", family, lambda: build(torchvision().models), of_images())


def _bottlenecks(models: Any, **options: Any) -> Any:
    return models.ResNet(models.resnet.Bottleneck, [1, 1, 1, 1], num_classes=CLASSES, **options)


def _vgg(models: Any, batch_norm: bool) -> nn.Module:
    """Return a VGG-11 sixteen times narrower, with one hidden layer."""
    features = models.vgg.make_layers([16, "M", 32, "M", 64, 64, "M", 64, 64, "M"], batch_norm=batch_norm)
    classifier = nn.Sequential(nn.Linear(64 * 16, 64), nn.ReLU(True), nn.Dropout(), nn.Linear(64, CLASSES))
    return nn.Sequential(features, nn.AdaptiveAvgPool2d(4), nn.Flatten(), classifier)


def _fcn(models: Any) -> nn.Module:
    backbone = models.resnet.ResNet(models.resnet.BasicBlock, [1, 1, 1, 1])
    layers = models._utils.IntermediateLayerGetter(backbone, {"layer3": "out"})
    return models.segmentation.FCN(layers, models.segmentation.fcn.FCNHead(256, SHADES))  # type: ignore[no-any-return]


def _pixels(name: str, build: Callable[[Any], nn.Module]) -> Foreign:
    return Foreign(f"torchvision.{name}", "U-Net", lambda: build(torchvision().models), of_pixels())


def _segmentation(name: str) -> Foreign:
    options = {"weights": None, "weights_backbone": None, "num_classes": SHADES}
    return _pixels(name, lambda models: getattr(models.segmentation, name)(**options))


MODELS = (
    _named("resnet18", "CNN"),
    _made("resnet_bottleneck", "CNN", _bottlenecks),
    _made("resnext", "CNN", lambda models: _bottlenecks(models, groups=8, width_per_group=4)),
    _made("vgg_bn", "CNN", lambda models: _vgg(models, True)),
    _made("densenet", "CNN", lambda models: models.DenseNet(12, (3, 3, 3), 24, num_classes=CLASSES)),
    _named("googlenet", "CNN", aux_logits=False, init_weights=False),
    _named("regnet_x_400mf", "CNN"),
    _made("mobilenet_v2", "MobileNet", lambda models: models.MobileNetV2(num_classes=CLASSES, width_mult=0.35)),
    _named("mobilenet_v3_small", "MobileNet"),
    _named("mnasnet0_5", "MobileNet"),
    _named("shufflenet_v2_x0_5", "MobileNet"),
    _named("efficientnet_b0", "MobileNet"),
    _named("regnet_y_400mf", "MobileNet"),
    _made("vgg", "ConvNeXt", lambda models: _vgg(models, False)),
    _named("squeezenet1_1", "ConvNeXt"),
    _made(
        "convnext",
        "ConvNeXt",
        lambda models: models.ConvNeXt(
            [models.convnext.CNBlockConfig(32, 64, 2), models.convnext.CNBlockConfig(64, None, 2)], num_classes=CLASSES
        ),
    ),
    _made("vision_transformer", "ViT", lambda models: models.VisionTransformer(64, 8, 3, 4, 64, 128, num_classes=CLASSES)),
    _made(
        "swin_transformer",
        "ViT",
        lambda models: models.SwinTransformer([4, 4], 32, [2, 2], [2, 4], [4, 4], num_classes=CLASSES),
    ),
    _made(
        "maxvit",
        "ViT",
        lambda models: models.MaxVit((64, 64), 16, 4, [16, 32], [1, 1], 8, 0.0, num_classes=CLASSES),
    ),
    _pixels("fcn", _fcn),
    _segmentation("deeplabv3_mobilenet_v3_large"),
    _segmentation("lraspp_mobilenet_v3_large"),
)
