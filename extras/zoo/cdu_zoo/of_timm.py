"""Models of timm, one for each of many kinds of blocks."""

from __future__ import annotations

from typing import Any

from actcodec.study.data.batches import CLASSES
from actcodec.study.foreign import Foreign
from actcodec.study.models.library import timm

from cdu_zoo.losses import of_images

_SIDE = 64


def _named(name: str, family: str, **options: Any) -> Foreign:
    """Return an image classifier that the library has under this name, without trained weights."""
    return Foreign(
        f"timm.{name}", family, lambda: timm().create_model(name, num_classes=CLASSES, **options), of_images(side=_SIDE)
    )


def _made(kind: str, family: str, **options: Any) -> Foreign:
    """Return a model of one of the library's classes, of which no named model is as small as this."""
    return Foreign(
        f"timm.{kind}", family, lambda: getattr(timm().models, kind)(num_classes=CLASSES, **options), of_images(side=_SIDE)
    )


MODELS = (
    _named("test_resnet", "CNN"),
    _named("wide_resnet50_2", "CNN", layers=(1, 1, 1, 1), channels=(16, 32, 64, 128)),
    _named("res2net50_26w_4s", "CNN", layers=(1, 1, 1, 1), base_width=8),
    _named("resnest14d", "CNN", base_width=16, stem_width=8),
    _named("test_byobnet", "MobileNet"),
    _named("test_efficientnet", "MobileNet"),
    _named("test_efficientnet_gn", "MobileNet"),
    *(_named(name, "MobileNet") for name in ("mobilenetv1_100", "mobilenetv3_small_050", "mobilenetv4_conv_small_050")),
    *(_named(name, "MobileNet") for name in ("mnasnet_small", "semnasnet_050", "tinynet_e", "lcnet_050")),
    *(_named(name, "MobileNet") for name in ("repghostnet_050", "starnet_s1")),
    _named("ghostnet_050", "MobileNet"),
    _named("mobilevit_xxs", "MobileNet"),
    _named("test_convnext", "ConvNeXt"),
    _named("convnextv2_atto", "ConvNeXt", depths=(1, 1, 2, 1), dims=(16, 32, 48, 64)),
    _named("test_nfnet", "ConvNeXt"),
    _named("test_mambaout", "ConvNeXt"),
    _made("MlpMixer", "ConvNeXt", img_size=_SIDE, patch_size=8, num_blocks=3, embed_dim=64),
    _made("MetaFormer", "ConvNeXt", depths=(1, 1, 1, 1), dims=(16, 32, 48, 64)),
    _named("test_vit", "ViT"),
    _named("test_vit3", "ViT", img_size=_SIDE),
    _named("deit_tiny_patch16_224", "ViT", img_size=_SIDE, patch_size=8, embed_dim=64, depth=3, num_heads=4),
    _named("xcit_nano_12_p8_224", "ViT", embed_dim=64, depth=3),
    _named(
        "swinv2_tiny_window8_256",
        "ViT",
        img_size=_SIDE,
        window_size=4,
        embed_dim=24,
        depths=(1, 1, 2, 1),
        num_heads=(2, 2, 4, 4),
    ),
    _named("levit_128s", "ViT", img_size=_SIDE),
)
