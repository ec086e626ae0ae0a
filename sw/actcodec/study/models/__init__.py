"""Small reference networks for comparing codecs."""

from actcodec.study.models.resnet import ResNet
from actcodec.study.models.vdsr import Vdsr
from actcodec.study.models.vgg import Vgg
from actcodec.study.models.vit import VisionTransformer
from actcodec.study.models.wide_resnet import WideResNet

__all__ = ["ResNet", "Vdsr", "Vgg", "VisionTransformer", "WideResNet"]
